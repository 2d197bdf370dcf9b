//! One place of a JSON Schema and its allowed values, with references resolved.
use serde_json::{Map, Value};

/// The part of a schema that a place covers.
#[derive(Clone, Copy)]
enum View<'s> {
    /// The whole schema.
    Whole,
    /// One of its types.
    Type(&'s str),
    /// One of its words.
    Word(&'s Value),
}

/// A place with its name: the name of its definition, and the keys below it.
#[derive(Clone)]
pub(crate) struct Node<'s> {
    definitions: Option<&'s Map<String, Value>>,
    value: &'s Value,
    view: View<'s>,
    /// Keys beside a reference: the tag of a variant whose fields are a definition.
    beside: Vec<Property<'s>>,
    /// Whether the key of this place may be absent: it is then never null.
    is_optional: bool,
    pub name: String,
}

/// A key of an object.
#[derive(Clone)]
pub(crate) struct Property<'s> {
    pub key: &'s str,
    pub is_required: bool,
    pub node: Node<'s>,
}

/// The allowed values of a place.
pub(crate) enum Shape<'s> {
    /// One of several alternatives.
    OneOf(Vec<Node<'s>>),
    /// A constant.
    Constant(&'s Value),
    /// Named keys.
    Object(Vec<Property<'s>>),
    /// Any keys with values of one kind.
    Map(Node<'s>),
    /// Any number of values of one kind.
    List(Node<'s>),
    /// A fixed number of values.
    Tuple(Vec<Node<'s>>),
    /// A text, a number, a boolean or null: its JSON type.
    Scalar(&'s str),
}

impl<'s> Node<'s> {
    /// The root of a schema.
    pub(crate) fn root(schema: &'s Value) -> Self {
        let definitions = schema.get("$defs").and_then(Value::as_object);
        Self {
            definitions,
            value: schema,
            view: View::Whole,
            beside: Vec::new(),
            is_optional: false,
            name: String::new(),
        }
        .resolved()
    }

    fn is_null(&self) -> bool {
        self.keyword("type").is_some_and(|kind| kind == "null")
    }

    /// The keyword of this place, for example `pattern`.
    pub(crate) fn keyword(&self, keyword: &str) -> Option<&'s Value> {
        self.value.get(keyword)
    }

    fn child(&self, value: &'s Value, step: &str) -> Self {
        let name = format!("{}{step}", self.name);
        Self { value, view: View::Whole, beside: Vec::new(), is_optional: false, name, ..self.clone() }
            .resolved()
    }

    /// Resolves references. A definition starts a new name, unless it is beside the tag of a variant.
    fn resolved(mut self) -> Self {
        let Some(reference) = self.value.get("$ref").and_then(Value::as_str) else { return self };
        let name = reference.strip_prefix("#/$defs/").expect("references lead to definitions");
        if self.value.get("properties").is_some() {
            self.beside = self.properties();
        } else {
            name.clone_into(&mut self.name);
        }
        self.value = &self.definitions.expect("a schema with references has definitions")[name];
        self.resolved()
    }

    /// The allowed values of this place.
    ///
    /// # Panics
    /// When the schema has an unknown keyword.
    pub(crate) fn shape(&self) -> Shape<'s> {
        match self.view {
            View::Word(word) => return Shape::Constant(word),
            View::Type(kind) => return self.typed(kind),
            View::Whole => {}
        }
        if let Some(constant) = self.keyword("const") {
            return Shape::Constant(constant);
        }
        if let Some(words) = self.keyword("enum").and_then(Value::as_array) {
            let word =
                |word| Self { view: View::Word(word), name: format!("{}={word}", self.name), ..self.clone() };
            return Shape::OneOf(words.iter().map(word).collect());
        }
        if let Some(branches) =
            ["oneOf", "anyOf"].into_iter().find_map(|keyword| self.keyword(keyword)?.as_array())
        {
            let mut beside = self.beside.clone();
            beside.extend(self.properties());
            let branches = branches.iter().enumerate().map(|(index, branch)| {
                let mut node = self.branch(branch, index);
                node.beside.extend(beside.clone());
                node
            });
            return Shape::OneOf(branches.filter(|node| !(self.is_optional && node.is_null())).collect());
        }
        match self.keyword("type") {
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                let kinds = kinds.filter(|kind| !(self.is_optional && *kind == "null"));
                Shape::OneOf(kinds.map(|kind| self.of_type(kind)).collect())
            }
            Some(Value::String(kind)) => self.typed(kind),
            other => panic!("{} has no type that is known: {other:?} in {}", self.name, self.value),
        }
    }

    /// A branch of alternatives, named after its tag where it has one.
    fn branch(&self, branch: &'s Value, index: usize) -> Self {
        let properties = branch.get("properties").and_then(Value::as_object);
        let constant = |value: &Value| value.get("const").and_then(Value::as_str).map(str::to_owned);
        let tag = properties
            .into_iter()
            .flatten()
            .find_map(|(key, value)| Some(format!("[{key}={}]", constant(value)?)));
        let only = || properties.filter(|keys| keys.len() == 1)?.keys().next().map(|key| format!("[{key}]"));
        let step = tag.or_else(|| constant(branch).map(|word| format!("={word}"))).or_else(only);
        self.child(branch, &step.unwrap_or_else(|| format!("[{index}]")))
    }

    fn of_type(&self, kind: &'s str) -> Self {
        Self { view: View::Type(kind), name: format!("{}:{kind}", self.name), ..self.clone() }
    }

    fn typed(&self, kind: &'s str) -> Shape<'s> {
        match kind {
            "object" => self.object(),
            "array" => match self.keyword("prefixItems").and_then(Value::as_array) {
                Some(items) => {
                    let item = |(index, item)| self.child(item, &format!("[{index}]"));
                    Shape::Tuple(items.iter().enumerate().map(item).collect())
                }
                None => Shape::List(
                    self.child(self.keyword("items").expect("a list has a kind of elements"), "[]"),
                ),
            },
            scalar => Shape::Scalar(scalar),
        }
    }

    fn object(&self) -> Shape<'s> {
        let mut properties = self.beside.clone();
        properties.extend(self.properties());
        match self.keyword("additionalProperties") {
            Some(value @ Value::Object(_)) if properties.is_empty() => Shape::Map(self.child(value, "{}")),
            _ => Shape::Object(properties),
        }
    }

    fn properties(&self) -> Vec<Property<'s>> {
        let required = self.keyword("required").and_then(Value::as_array);
        let is_required = |key: &str| required.into_iter().flatten().any(|required| required == key);
        let property = |(key, value): (&'s String, &'s Value)| {
            let is_required = is_required(key);
            let node = self.child(value, &format!(".{key}"));
            Property { key, is_required, node: Node { is_optional: !is_required, ..node } }
        };
        self.keyword("properties").and_then(Value::as_object).into_iter().flatten().map(property).collect()
    }
}
