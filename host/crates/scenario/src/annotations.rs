//! Annotations for the Lua language server, generated from the schema that checks scenarios.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value as Json;

/// Annotations of the functions that a scenario can call. Hand-written: the schema does not
/// describe functions.
const API: &str = include_str!("api.lua");

/// Returns the text of the annotations file (`sdk/lua/veeksha.lua`): the Lua API first, then the
/// scenario's keys.
pub fn lua_annotations(shipped: &crate::schema::Shipped) -> String {
    let schema = crate::schema::json_schema(shipped);
    let mut writer = AnnotationWriter {
        root: &schema,
        classes: Vec::new(),
        done: BTreeSet::new(),
    };
    writer.class("veeksha.Scenario", &schema);
    let mut text = API.to_owned();
    for class in writer.classes.iter().rev() {
        text.push('\n');
        text.push_str(class);
    }
    text
}

struct AnnotationWriter<'s> {
    root: &'s Json,
    /// Innermost first: a class is complete only after the classes that it refers to.
    classes: Vec<String>,
    done: BTreeSet<String>,
}

impl AnnotationWriter<'_> {
    /// Writes an object schema as a class.
    fn class(&mut self, name: &str, schema: &Json) {
        if !self.done.insert(name.to_owned()) {
            return;
        }
        let mut text = comment(schema);
        let _ = writeln!(text, "---@class {name}");
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .collect();
        for (key, of) in schema
            .get("properties")
            .and_then(Json::as_object)
            .into_iter()
            .flatten()
        {
            let is_refused = ["x-not-supported-yet", "x-refused", "x-renamed"]
                .iter()
                .any(|mark| of.get(mark).is_some());
            if is_refused || key.starts_with('$') {
                continue;
            }
            let kind = self.kind(of, &format!("{name}.{key}"));
            let optional = if required.contains(&key.as_str()) { "" } else { "?" };
            let _ = writeln!(text, "---@field {key}{optional} {kind}{}", remark(of));
        }
        self.classes.push(text);
    }

    /// Returns a schema's type in annotation syntax; a type that needs a declaration is declared as
    /// `name`.
    fn kind(&mut self, schema: &Json, name: &str) -> String {
        if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            let target = reference.strip_prefix("#/$defs/").unwrap_or_default();
            let of = self
                .root
                .get("$defs")
                .and_then(|definitions| definitions.get(target));
            let name = format!("veeksha.{target}");
            return of.map_or_else(|| "any".to_owned(), |of| self.named(of, &name));
        }
        self.named(schema, name)
    }

    fn named(&mut self, schema: &Json, name: &str) -> String {
        if let Some(function) = schema.get("x-function").and_then(Json::as_str) {
            return function.to_owned();
        }
        if let Some(value) = schema.get("const") {
            return value.to_string();
        }
        if let Some(values) = schema.get("enum").and_then(Json::as_array) {
            return values.iter().map(Json::to_string).collect::<Vec<_>>().join("|");
        }
        if let Some(variants) = schema
            .get("oneOf")
            .or_else(|| schema.get("anyOf"))
            .and_then(Json::as_array)
        {
            return self.union(schema, variants, name);
        }
        let kinds: Vec<String> = crate::check::types(schema)
            .into_iter()
            .map(|kind| self.plain(kind, schema, name))
            .collect();
        if kinds.is_empty() {
            "any".to_owned()
        } else {
            kinds.join("|")
        }
    }

    fn plain(&mut self, kind: &str, schema: &Json, name: &str) -> String {
        match kind {
            "null" => "nil".to_owned(),
            "array" => {
                let items = schema
                    .get("items")
                    .map_or_else(|| "any".to_owned(), |of| self.kind(of, name));
                if items.contains('|') {
                    format!("({items})[]")
                } else {
                    format!("{items}[]")
                }
            }
            "object" if schema.get("properties").is_some() => {
                self.class(name, schema);
                name.to_owned()
            }
            "object" => match schema.get("additionalProperties") {
                Some(of @ Json::Object(_)) => format!("table<string, {}>", self.kind(of, name)),
                _ => "table<string, any>".to_owned(),
            },
            other => other.to_owned(),
        }
    }

    /// Declares a class per tagged variant, and an alias for a union of several classes.
    fn union(&mut self, schema: &Json, variants: &[Json], name: &str) -> String {
        let mut kinds: Vec<String> = Vec::new();
        for (index, variant) in variants.iter().enumerate() {
            let tag = variant.pointer("/properties/type/const").and_then(Json::as_str);
            let of_variant = match tag {
                Some(tag) => format!("{name}.{tag}"),
                None => format!("{name}.{}", index + 1),
            };
            let kind = self.kind(variant, &of_variant);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        if kinds.iter().filter(|kind| kind.starts_with("veeksha.")).count() < 2 && !name.ends_with("Metric") {
            return kinds.join("|");
        }
        if self.done.insert(name.to_owned()) {
            let mut text = comment(schema);
            let _ = writeln!(text, "---@alias {name} {}", kinds.join("|"));
            self.classes.push(text);
        }
        name.to_owned()
    }
}

/// Columns at which comments are wrapped.
const WIDTH: usize = 100;

/// Returns the description of a schema as comment lines.
fn comment(schema: &Json) -> String {
    let description = schema.get("description").and_then(Json::as_str);
    let mut text = String::new();
    for paragraph in description.unwrap_or_default().lines() {
        let mut line = "---".to_owned();
        for word in paragraph.split_whitespace() {
            let is_first = line.len() == 3;
            if !is_first && line.chars().count() + 1 + word.chars().count() > WIDTH {
                let _ = writeln!(text, "{line}");
                line.truncate(3);
            } else if !is_first {
                line.push(' ');
            }
            line.push_str(word);
        }
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Returns the description and default that follow a field's type.
fn remark(schema: &Json) -> String {
    let description = schema
        .get("description")
        .and_then(Json::as_str)
        .unwrap_or_default()
        .replace('\n', " ");
    let default = match schema.get("default") {
        None | Some(Json::Null) => String::new(),
        Some(Json::Object(entries)) => match entries.get("type").and_then(Json::as_str) {
            Some(tag) => format!(" Default: `{tag}`."),
            None => String::new(),
        },
        Some(Json::Array(items)) if items.iter().any(Json::is_object) => String::new(),
        Some(value) => format!(" Default: `{value}`."),
    };
    let remark = format!("{description}{default}");
    if remark.is_empty() {
        remark
    } else {
        format!(" {}", remark.trim_start())
    }
}
