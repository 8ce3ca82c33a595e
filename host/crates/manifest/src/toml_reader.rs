//! Tables of TOML, read key by key with precise errors.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::ManifestError;

/// A TOML table whose keys are read one after another; [`TableReader::finish`] refuses the others.
pub(crate) struct TableReader<'a> {
    text: &'a str,
    /// The path of the table, empty at the root.
    path: String,
    /// None if the table does not exist: then no key does.
    table: Option<&'a DeTable<'a>>,
    /// The keys that were asked for.
    known: Vec<&'static str>,
}

/// A value and its place.
pub(crate) struct TomlValue<'a> {
    text: &'a str,
    key: String,
    value: &'a Spanned<DeValue<'a>>,
}

/// Parses a document.
pub(crate) fn parse_document(text: &str) -> Result<Spanned<DeTable<'_>>, ManifestError> {
    DeTable::parse(text).map_err(|error| ManifestError::Syntax {
        line: line(text, error.span().map_or(0, |span| span.start)),
        message: error.message().trim().to_owned(),
    })
}

fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

impl<'a> TableReader<'a> {
    /// The root of a document.
    pub(crate) fn root(text: &'a str, table: &'a DeTable<'a>) -> Self {
        TableReader {
            text,
            path: String::new(),
            table: Some(table),
            known: Vec::new(),
        }
    }

    /// The value of a key, if it exists.
    pub(crate) fn optional(&mut self, key: &'static str) -> Option<TomlValue<'a>> {
        self.known.push(key);
        let value = self.table?.get(key)?;
        Some(TomlValue {
            text: self.text,
            key: self.path_of(key),
            value,
        })
    }

    /// The value of a key that must exist; `hint` describes it.
    pub(crate) fn required(&mut self, key: &'static str, hint: &str) -> Result<TomlValue<'a>, ManifestError> {
        self.optional(key).ok_or_else(|| ManifestError::MissingKey {
            key: self.path_of(key),
            hint: hint.to_owned(),
        })
    }

    /// A table inside this one. If it does not exist, none of its keys does.
    pub(crate) fn table(&mut self, key: &'static str) -> Result<TableReader<'a>, ManifestError> {
        let value = self.optional(key);
        let table = match &value {
            None => None,
            Some(value) => match value.value.get_ref() {
                DeValue::Table(table) => Some(table),
                _ => return Err(value.wrong_type("a table")),
            },
        };
        Ok(TableReader {
            text: self.text,
            path: self.path_of(key),
            table,
            known: Vec::new(),
        })
    }

    /// Refuses keys that nothing asked for.
    pub(crate) fn finish(self) -> Result<(), ManifestError> {
        let unknown = self
            .table
            .into_iter()
            .flat_map(|table| table.keys())
            .find(|key| !self.known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown else { return Ok(()) };
        Err(ManifestError::UnknownKey {
            line: line(self.text, key.span().start),
            key: self.path_of(key.get_ref()),
            hint: hint(key.get_ref(), &self.known),
        })
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            return key.to_owned();
        }
        format!("{}.{key}", self.path)
    }
}

impl<'a> TomlValue<'a> {
    /// The value as text.
    pub(crate) fn string(&self) -> Result<&'a str, ManifestError> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text.as_ref()),
            _ => Err(self.wrong_type("a string")),
        }
    }

    /// The value as a whole number.
    pub(crate) fn integer(&self) -> Result<i64, ManifestError> {
        let number = match self.value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.wrong_type("a whole number"))
    }

    /// The value as a table.
    pub(crate) fn table(&self) -> Result<TableReader<'a>, ManifestError> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(TableReader {
                text: self.text,
                path: self.key.clone(),
                table: Some(table),
                known: Vec::new(),
            }),
            _ => Err(self.wrong_type("a table")),
        }
    }

    /// The entries of an array.
    pub(crate) fn array(&self) -> Result<Vec<TomlValue<'a>>, ManifestError> {
        let DeValue::Array(entries) = self.value.get_ref() else {
            return Err(self.wrong_type("an array"));
        };
        let entry = |(position, value)| TomlValue {
            text: self.text,
            key: format!("{}[{position}]", self.key),
            value,
        };
        Ok(entries.iter().enumerate().map(entry).collect())
    }

    /// One of several names.
    pub(crate) fn one_of<T: Copy>(&self, all: &[T], name: fn(T) -> &'static str) -> Result<T, ManifestError> {
        let text = self.string()?;
        let names: Vec<&'static str> = all.iter().map(|value| name(*value)).collect();
        let found = all.iter().find(|value| name(**value) == text).copied();
        found.ok_or_else(|| self.invalid(format!("`{text}`"), hint(text, &names)))
    }

    /// The error for this value.
    pub(crate) fn invalid(&self, found: String, hint: String) -> ManifestError {
        ManifestError::InvalidValue {
            line: line(self.text, self.value.span().start),
            key: self.key.clone(),
            found,
            hint,
        }
    }

    fn wrong_type(&self, expected: &str) -> ManifestError {
        let found = match self.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.invalid(found.to_owned(), format!("expected {expected}"))
    }
}

/// Returns the nearest of the names, or all of them.
fn hint(typed: &str, names: &[&'static str]) -> String {
    match veeksha_slo::nearest(typed, names.iter().copied()) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("expected one of {}", names.join(", ")),
    }
}
