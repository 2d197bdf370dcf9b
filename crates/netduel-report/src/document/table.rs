//! A table: columns with title, unit and alignment, rows of typed cells, and notes.

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Columns from left to right.
    pub columns: Vec<Column>,
    /// Rows with one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Notes on how to read it.
    pub notes: Vec<String>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its title.
    pub title: String,
    /// The unit of all its numbers; empty when each cell has its own unit.
    pub unit: String,
    /// Kind of its cells.
    pub kind: ColumnKind,
}

/// Kind of the cells of a column; renderers align by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Names that identify a row. A renderer without room for the table repeats them before the other cells of the row.
    Key,
    /// Words.
    Text,
    /// Words that mean nothing without the title of the column, such as a fact of one of several runs.
    Titled,
    /// Numbers, right-aligned.
    Number,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number, with its unit if the column has none.
    Number(String),
    /// A count.
    Count(u64),
    /// Unknown or not counted.
    Absent,
}

impl Cell {
    /// Its text; a dash when unknown.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) | Self::Number(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Absent => "-".to_owned(),
        }
    }

    /// A formatted number, or unknown.
    pub fn number(number: Option<String>) -> Self {
        number.map_or(Self::Absent, Self::Number)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl Column {
    /// A column of names.
    pub fn key(title: impl Into<String>) -> Self {
        Self { title: title.into(), unit: String::new(), kind: ColumnKind::Key }
    }

    /// A column of words that its title gives a meaning.
    pub fn titled(title: impl Into<String>) -> Self {
        Self { kind: ColumnKind::Titled, ..Self::key(title) }
    }

    /// A column of words.
    pub fn text(title: impl Into<String>) -> Self {
        Self { kind: ColumnKind::Text, ..Self::key(title) }
    }

    /// A column of numbers.
    pub fn number(title: impl Into<String>) -> Self {
        Self { kind: ColumnKind::Number, ..Self::key(title) }
    }

    /// A column of numbers of one unit.
    pub fn of(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), ..Self::number(title) }
    }

    /// Title and unit.
    pub fn heading(&self) -> String {
        match (self.title.is_empty(), self.unit.is_empty()) {
            (_, true) => self.title.clone(),
            (true, false) => self.unit.clone(),
            (false, false) => format!("{}, {}", self.title, self.unit),
        }
    }
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new(), notes: Vec::new() }
    }

    /// The table without columns whose cells are all unknown.
    #[must_use]
    pub fn without_empty_columns(mut self) -> Self {
        let known: Vec<bool> = (0..self.columns.len())
            .map(|column| {
                self.rows.iter().any(|row| row.get(column).is_some_and(|cell| *cell != Cell::Absent))
            })
            .collect();
        let mut index = 0;
        self.columns.retain(|_| {
            index += 1;
            known[index - 1]
        });
        for row in &mut self.rows {
            let mut index = 0;
            row.retain(|_| {
                index += 1;
                known.get(index - 1).copied().unwrap_or(false)
            });
        }
        self
    }

    /// A row as a sentence, for a renderer without room for the table: `a, b: sent 3, received 2`.
    pub fn sentence(&self, row: &[Cell]) -> String {
        let cells = || self.columns.iter().zip(row);
        let keys: Vec<String> = cells()
            .filter(|(column, _)| column.kind == ColumnKind::Key)
            .map(|(_, cell)| cell.text())
            .collect();
        let others: Vec<String> = cells()
            .filter(|(column, cell)| column.kind != ColumnKind::Key && **cell != Cell::Absent)
            .map(|(column, cell)| {
                let unit = if column.unit.is_empty() { String::new() } else { format!(" {}", column.unit) };
                format!("{} {}{unit}", column.title, cell.text()).trim_start().to_owned()
            })
            .collect();
        format!("{}: {}", keys.join(", "), others.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(vec![
            Column::key("arm"),
            Column::of("rate", "Mbit/s"),
            Column::number("n"),
            Column::text("end"),
        ]);
        table.rows.push(vec!["a".into(), Cell::Number("12".to_owned()), Cell::Absent, "up".into()]);
        table.rows.push(vec!["b".into(), Cell::Absent, Cell::Absent, "down".into()]);
        table
    }

    #[test]
    fn column_without_a_known_cell_is_dropped_from_every_row() {
        let table = table().without_empty_columns();
        let titles: Vec<String> = table.columns.iter().map(Column::heading).collect();
        assert_eq!(titles, ["arm", "rate, Mbit/s", "end"]);
        assert_eq!(table.rows[1], [Cell::from("b"), Cell::Absent, Cell::from("down")]);
    }

    #[test]
    fn row_without_room_becomes_a_sentence_of_known_cells() {
        let table = table();
        assert_eq!(table.sentence(&table.rows[0]), "a: rate 12 Mbit/s, end up");
        assert_eq!(table.sentence(&table.rows[1]), "b: end down");
    }
}
