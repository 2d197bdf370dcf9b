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
    /// Whether its cells are names of runs: long ones may be broken after a hyphen where a table has no room for them.
    pub has_runs: bool,
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
        Self { title: title.into(), unit: String::new(), kind: ColumnKind::Key, has_runs: false }
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

    /// The column with names of runs as its cells.
    #[must_use]
    pub fn with_runs(self) -> Self {
        Self { has_runs: true, ..self }
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

    /// A row for a renderer without room for the table: its names and numbers (`a, b: sent 3, received 2`), then each text with its
    /// title (`cause: the receive window`).
    pub fn lines(&self, row: &[Cell]) -> Vec<String> {
        let (mut names, mut numbers, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (column, cell) in self.columns.iter().zip(row) {
            let (title, text, unit) = (column.title.as_str(), cell.text(), column.unit.as_str());
            match column.kind {
                ColumnKind::Key => names.push(text),
                _ if *cell == Cell::Absent => {}
                ColumnKind::Number => numbers.push(joined([title, text.as_str(), unit], " ")),
                // A text may be a sentence of its own, with commas and semicolons.
                ColumnKind::Text | ColumnKind::Titled => texts.push(joined([title, text.as_str()], ": ")),
            }
        }
        let (names, numbers) = (names.join(", "), numbers.join(", "));
        texts.insert(0, joined([names.as_str(), numbers.as_str()], ": "));
        texts
    }

    /// The same in one sentence.
    pub fn sentence(&self, row: &[Cell]) -> String {
        self.lines(row).join("; ")
    }
}

/// The words that are not empty, with a separator between them.
fn joined<const COUNT: usize>(words: [&str; COUNT], separator: &str) -> String {
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(separator)
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
        assert_eq!(table.sentence(&table.rows[0]), "a: rate 12 Mbit/s; end: up");
        assert_eq!(table.sentence(&table.rows[1]), "b; end: down");
    }

    #[test]
    fn row_without_room_has_a_line_for_each_text_with_its_title() {
        let mut table = Table::new(vec![Column::key("arm"), Column::text("cause"), Column::number("trials")]);
        table.columns.push(Column::text("evidence"));
        let cause = Cell::from("the client: it sent requests late");
        let trials = Cell::Number("1 of 2".to_owned());
        let row: [Cell; 4] = ["a".into(), cause, trials, "5 ms late; 60 % busy".into()];
        let [cause, evidence] =
            ["cause: the client: it sent requests late", "evidence: 5 ms late; 60 % busy"];
        assert_eq!(table.lines(&row), ["a: trials 1 of 2", cause, evidence]);
        let row: [Cell; 4] = ["b".into(), "unknown".into(), Cell::Absent, Cell::Absent];
        assert_eq!(table.lines(&row), ["b", "cause: unknown"]);
    }
}
