//! The walk over a tree and its schema that finds problems.

use serde_json::Value as Json;

use super::constants::equals;
use super::kind::{chosen, either, follow, is_switched_off, is_unset, name, shown, types};
use super::variant::{Choice, choose, text, variant_tag};
use crate::problem::Problem;
use crate::secret_keys::is_secret_path;
use crate::tree::{Node, Value, shortened};
use crate::{path, word};

/// Maximum number of reported problems: more are not worth reading at once.
const MAX_PROBLEMS: usize = 20;
/// Maximum number of problems in memory; further ones are only counted.
const MAX_KEPT: usize = 200;
/// Key of a schema with the valid name of each word that users write in its place.
const SYNONYMS: &str = "x-synonyms";
/// Key of the schema of a former key, with its new name.
const RENAMED: &str = "x-renamed";
/// Maximum schema depth. Schemas may refer to themselves, and a plugin's schema is untrusted.
const MAX_DEPTH: u32 = 128;
/// Maximum steps of one check, so that a hostile schema cannot make it endless.
const MAX_STEPS: u32 = 2_000_000;

/// Returns the problems of `node` against `schema`: at most 20, followed by one with the number of
/// the others. Their paths begin with `path`.
pub fn check_value(schema: &Json, node: &Node, path: &str) -> Vec<Problem> {
    let mut checker = Checker {
        root: schema,
        problems: Vec::new(),
        unkept: 0,
        steps: 0,
        exhausted: false,
    };
    checker.check(schema, node, path, CheckLevel::default());
    let found = checker.found();
    let mut problems = checker.problems;
    if found > MAX_PROBLEMS {
        problems.truncate(MAX_PROBLEMS);
        problems.push(Problem {
            path: path.to_owned(),
            place: None,
            message: format!("and {} more problems", found - MAX_PROBLEMS),
            nearest: None,
        });
    }
    problems
}

/// The depth of a check, and the schema's default for this value.
#[derive(Clone, Copy, Default)]
struct CheckLevel<'s> {
    depth: u32,
    default: Option<&'s Json>,
}

impl<'s> CheckLevel<'s> {
    /// The same value at the same place, checked against another schema.
    fn same(self) -> Self {
        CheckLevel {
            depth: self.depth + 1,
            ..self
        }
    }

    fn key(self, key: &str) -> Self {
        CheckLevel {
            depth: self.depth + 1,
            default: self.default.and_then(|default| default.get(key)),
        }
    }

    fn item(self, index: usize) -> Self {
        CheckLevel {
            depth: self.depth + 1,
            default: self.default.and_then(|default| default.get(index)),
        }
    }
}

struct Checker<'s> {
    root: &'s Json,
    problems: Vec<Problem>,
    /// Number of problems that are not kept.
    unkept: usize,
    steps: u32,
    exhausted: bool,
}

impl<'s> Checker<'s> {
    /// Returns the number of problems found so far.
    fn found(&self) -> usize {
        self.problems.len() + self.unkept
    }

    fn report(&mut self, node: &Node, path: &str, message: String) {
        self.report_near(node, path, message, None);
    }

    fn report_near(&mut self, node: &Node, path: &str, message: String, nearest: Option<String>) {
        let problem = Problem {
            path: path.to_owned(),
            place: node.place.clone(),
            message,
            nearest,
        };
        if self.problems.len() >= MAX_KEPT {
            self.unkept += 1;
        } else if !self.problems.contains(&problem) {
            // The parts of one schema (`allOf`) may report the same problem.
            self.problems.push(problem);
        }
    }

    fn check(&mut self, schema: &'s Json, node: &Node, path: &str, level: CheckLevel<'s>) {
        let level = CheckLevel {
            default: schema.get("default").or(level.default),
            ..level
        };
        self.steps += 1;
        if self.exhausted {
            return;
        }
        if level.depth > MAX_DEPTH {
            self.exhausted = true;
            let message = format!("is nested more than {MAX_DEPTH} levels deep and cannot be checked");
            self.report(node, path, message);
            return;
        }
        if self.steps > MAX_STEPS {
            self.exhausted = true;
            let message = format!(
                "the check ends here after {MAX_STEPS} steps: the value is too large, or the schema of a plugin too complex"
            );
            self.report(node, path, message);
            return;
        }
        if schema.get("x-not-supported-yet") == Some(&Json::Bool(true)) {
            if !is_switched_off(node) {
                self.report(
                    node,
                    path,
                    "not supported by this version yet; remove it".to_owned(),
                );
            }
            return;
        }
        if let Some(reason) = schema.get("x-refused").and_then(Json::as_str) {
            self.report(node, path, reason.to_owned());
            return;
        }
        if let Some(name) = schema.get(RENAMED).and_then(Json::as_str) {
            self.report(node, path, format!("this key is now named `{name}`"));
            return;
        }
        if schema == &Json::Bool(false) {
            self.report(node, path, "no value is allowed here".to_owned());
            return;
        }
        if let Some(all) = schema.get("allOf").and_then(Json::as_array) {
            for part in all {
                self.check(part, node, path, level.same());
            }
        }
        if schema.get("$ref").is_some() {
            self.check(follow(self.root, schema), node, path, level.same());
            return;
        }
        if let Some(variants) = schema
            .get("oneOf")
            .or_else(|| schema.get("anyOf"))
            .and_then(Json::as_array)
        {
            self.check_choice(schema, variants, node, path, level);
            // The variant has been checked completely, unless the schema lists further keys next to
            // the choice.
            if schema.get("type").is_none() && schema.get("properties").is_none() {
                return;
            }
        }
        if self.check_constants(schema, node, path) {
            self.check_kind(schema, node, path, level);
        }
    }

    fn check_choice(
        &mut self,
        schema: &Json,
        variants: &'s [Json],
        node: &Node,
        path: &str,
        level: CheckLevel<'s>,
    ) {
        match choose(self.root, variants, node, level.default) {
            Choice::Variant(variant) => self.check(variant, node, path, level.same()),
            Choice::Constants(values) => {
                self.check_one_of(&values, schema.get(SYNONYMS), node, path);
            }
            Choice::UnknownTag { tag, known } => {
                let later: Vec<&str> = schema
                    .get("x-not-supported-yet")
                    .and_then(Json::as_array)
                    .map(|names| names.iter().filter_map(Json::as_str).collect())
                    .unwrap_or_default();
                let given = node.get(tag).unwrap_or(node);
                let path = path::join(path, tag);
                let list = either(&known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>());
                match text(given) {
                    Some(text) if later.iter().any(|name| name.eq_ignore_ascii_case(text)) => {
                        let message = format!("`{text}` is not supported by this version yet; it has {list}");
                        self.report(given, &path, message);
                    }
                    Some(text) => {
                        let nearest = veeksha_slo::nearest(text, known).map(str::to_owned);
                        let message = format!("unknown {tag} `{}`; it must be {list}", shortened(text));
                        self.report_near(given, &path, message, nearest);
                    }
                    None => {
                        self.report(
                            given,
                            &path,
                            format!("expected {list}, got {}", given_value(given, &path)),
                        );
                    }
                }
            }
            Choice::MissingTag { tag, known } => {
                let list = either(&known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>());
                self.report(node, path, format!("`{tag}` is missing; it must be {list}"));
            }
            Choice::WrongKind(kinds) => self.report_kind(&kinds, node, path),
            Choice::Try(variants) => {
                // No tag distinguishes the variants: assume the one with the fewest problems.
                let mut best: Option<(Vec<Problem>, usize)> = None;
                for variant in variants {
                    let before = (
                        std::mem::take(&mut self.problems),
                        std::mem::take(&mut self.unkept),
                    );
                    self.check(variant, node, path, level.same());
                    let count = self.found();
                    let found = std::mem::replace(&mut self.problems, before.0);
                    let unkept = std::mem::replace(&mut self.unkept, before.1);
                    if best
                        .as_ref()
                        .is_none_or(|(best, unkept)| count < best.len() + unkept)
                    {
                        best = Some((found, unkept));
                    }
                }
                let (problems, unkept) = best.unwrap_or_default();
                self.problems.extend(problems);
                self.unkept += unkept;
            }
        }
    }

    /// Checks `const` and `enum`; returns true if the value is valid so far.
    fn check_constants(&mut self, schema: &'s Json, node: &Node, path: &str) -> bool {
        if let Some(value) = schema.get("const") {
            self.check_one_of(&[value], None, node, path)
        } else if let Some(values) = schema.get("enum").and_then(Json::as_array) {
            let values: Vec<_> = values.iter().collect();
            self.check_one_of(&values, schema.get(SYNONYMS), node, path)
        } else {
            true
        }
    }

    /// Reports a value that is none of `values`; returns true if it is one.
    fn check_one_of(&mut self, values: &[&Json], synonyms: Option<&Json>, node: &Node, path: &str) -> bool {
        if values.iter().any(|value| equals(node, value)) {
            return true;
        }
        let list = either(&values.iter().map(|value| shown(value)).collect::<Vec<_>>());
        let near = text(node).and_then(|typed| {
            let names = values.iter().filter_map(|value| value.as_str());
            let synonym = || synonyms?.get(typed)?.as_str();
            veeksha_slo::nearest(typed, names)
                .or_else(synonym)
                .map(str::to_owned)
        });
        self.report_near(
            node,
            path,
            format!("expected {list}, got {}", given_value(node, path)),
            near,
        );
        false
    }

    fn report_kind(&mut self, kinds: &[&str], node: &Node, path: &str) {
        // "Number" includes "integer": do not name both.
        let names: Vec<String> = kinds
            .iter()
            .filter(|kind| !(**kind == "integer" && kinds.contains(&"number")))
            .filter(|kind| !(**kind == "null" && kinds.len() > 1))
            .map(|kind| name(kind).to_owned())
            .collect();
        self.report(
            node,
            path,
            format!("expected {}, got {}", either(&names), given_value(node, path)),
        );
    }

    fn check_kind(&mut self, schema: &'s Json, node: &Node, path: &str, level: CheckLevel<'s>) {
        let kinds = types(schema);
        let kind = chosen(node, &kinds);
        if !kinds.is_empty() && kind.is_none() {
            self.report_kind(&kinds, node, path);
            return;
        }
        match &node.value {
            Value::Function
                if kind != Some("function")
                    && schema.get("oneOf").is_none()
                    && schema.get("anyOf").is_none() =>
            {
                self.report(node, path, "a function is not allowed here".to_owned());
            }
            Value::Int(value) => self.check_number(schema, *value as f64, kind, node, path),
            Value::Float(value) => self.check_number(schema, *value, kind, node, path),
            Value::Word(typed) if matches!(kind, Some("integer" | "number")) => {
                if let Some(number) = word::number(typed) {
                    let number = match number {
                        Value::Int(value) => value as f64,
                        Value::Float(value) => value,
                        _ => return,
                    };
                    self.check_number(schema, number, kind, node, path);
                }
            }
            Value::Word(_) if kind == Some("array") => {
                // A single word is accepted as a list with one item.
                if let Some(items) = schema.get("items") {
                    self.check(items, node, &path::item(path, 0), level.item(0));
                }
                self.check_length(schema, 1, "minItems", "maxItems", "items", node, path);
            }
            Value::Text(typed) | Value::Word(typed) if kind != Some("null") => {
                let length = typed.chars().count();
                self.check_length(schema, length, "minLength", "maxLength", "characters", node, path);
            }
            Value::Map(entries) if kind == Some("array") && entries.is_empty() => {
                self.check_length(schema, 0, "minItems", "maxItems", "items", node, path);
            }
            Value::List(items) => {
                self.check_length(schema, items.len(), "minItems", "maxItems", "items", node, path);
                let of = schema.get("items").unwrap_or(&Json::Bool(true));
                for (index, item) in items.iter().enumerate() {
                    self.check(of, item, &path::item(path, index), level.item(index));
                }
                if schema.get("uniqueItems") == Some(&Json::Bool(true)) {
                    for (index, item) in items.iter().enumerate() {
                        if items[..index].iter().any(|earlier| earlier.value == item.value) {
                            self.report(item, &path::item(path, index), "is in the list twice".to_owned());
                        }
                    }
                }
            }
            Value::Map(entries) => self.check_map(schema, entries, node, path, level),
            _ => {}
        }
    }

    fn check_number(&mut self, schema: &Json, value: f64, kind: Option<&str>, node: &Node, path: &str) {
        if !value.is_finite() {
            self.report(
                node,
                path,
                format!("expected a finite number, got {}", given_value(node, path)),
            );
            return;
        }
        let given = given_value(node, path);
        if kind == Some("integer")
            && matches!(node.value, Value::Float(_) | Value::Word(_))
            && value.abs() > 9.2e18
        {
            self.report(node, path, format!("must be at most {}, got {given}", i64::MAX));
            return;
        }
        let bound = |key: &str| schema.get(key).and_then(Json::as_f64);
        let shown = |bound: f64| Json::from(bound).to_string().trim_end_matches(".0").to_owned();
        let message = if let Some(least) = bound("minimum").filter(|least| value < *least) {
            format!("must be at least {}, got {given}", shown(least))
        } else if let Some(least) = bound("exclusiveMinimum").filter(|least| value <= *least) {
            format!("must be more than {}, got {given}", shown(least))
        } else if let Some(most) = bound("maximum").filter(|most| value > *most) {
            format!("must be at most {}, got {given}", shown(most))
        } else if let Some(most) = bound("exclusiveMaximum").filter(|most| value >= *most) {
            format!("must be less than {}, got {given}", shown(most))
        } else {
            return;
        };
        self.report(node, path, message);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "lists and texts share the rule and differ in its words"
    )]
    fn check_length(
        &mut self,
        schema: &Json,
        length: usize,
        least: &str,
        most: &str,
        unit: &str,
        node: &Node,
        path: &str,
    ) {
        let bound = |key: &str| schema.get(key).and_then(Json::as_u64);
        let length = length as u64;
        if let Some(least) = bound(least).filter(|least| length < *least) {
            let message = match (length, least) {
                (0, 1) => "must not be empty".to_owned(),
                _ => format!("must have at least {least} {unit}, got {length}"),
            };
            self.report(node, path, message);
        } else if let Some(most) = bound(most).filter(|most| length > *most) {
            self.report(
                node,
                path,
                format!("must have at most {most} {unit}, got {length}"),
            );
        }
    }

    fn check_map(
        &mut self,
        schema: &'s Json,
        entries: &[(String, Node)],
        node: &Node,
        path: &str,
        level: CheckLevel<'s>,
    ) {
        let properties = schema.get("properties").and_then(Json::as_object);
        let others = schema.get("additionalProperties").unwrap_or(&Json::Bool(true));
        for (index, (key, value)) in entries.iter().enumerate() {
            let below = path::join(path, key);
            if entries[..index].iter().any(|(earlier, _)| earlier == key) {
                self.report(value, &below, "is given twice".to_owned());
            }
            match properties.and_then(|properties| properties.get(key)) {
                Some(_) if is_unset(schema, key, value) => {}
                Some(of) => self.check(of, value, &below, level.key(key)),
                None if others == &Json::Bool(false) => {
                    let names = properties.into_iter().flat_map(|properties| properties.iter());
                    let names = names
                        .filter(|(_, of)| is_accepted(of))
                        .map(|(name, _)| name.as_str());
                    let near = veeksha_slo::nearest(key, names).map(str::to_owned);
                    self.report_near(value, &below, unknown_key(schema, near.is_some()), near);
                }
                None => self.check(others, value, &below, level.key(key)),
            }
        }
        let required = schema
            .get("required")
            .and_then(Json::as_array)
            .into_iter()
            .flatten();
        for key in required.filter_map(Json::as_str) {
            // A constant does not have to be written: the variant was selected without it.
            let is_constant = variant_tag(schema, key).is_some();
            let has_old_name = entries.iter().any(|(given, _)| {
                let of = properties.and_then(|properties| properties.get(given));
                of.and_then(|of| of.get(RENAMED)?.as_str()) == Some(key)
            });
            if !is_constant && !has_old_name && !entries.iter().any(|(given, _)| given == key) {
                self.report(node, path, format!("`{key}` is missing"));
            }
        }
    }
}

/// Returns true if a key with this schema can have a value.
fn is_accepted(schema: &Json) -> bool {
    ["x-not-supported-yet", "x-refused", RENAMED]
        .iter()
        .all(|mark| schema.get(mark).is_none())
}

/// Lists the valid names if none is near.
fn unknown_key(schema: &Json, has_nearest: bool) -> String {
    if has_nearest {
        return "unknown key".to_owned();
    }
    let names: Vec<String> = schema
        .get("properties")
        .and_then(Json::as_object)
        .into_iter()
        .flatten()
        .filter(|(name, of)| is_accepted(of) && !name.starts_with('$'))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if names.is_empty() {
        "unknown key".to_owned()
    } else {
        format!("unknown key; valid keys: {}", names.join(", "))
    }
}

/// Returns a value as named in a message; of a value that may be secret, only its type.
fn given_value(node: &Node, path: &str) -> String {
    match &node.value {
        Value::Text(_) | Value::Word(_) if is_secret_path(path) => "a text".to_owned(),
        Value::Int(_) | Value::Float(_) if is_secret_path(path) => "a number".to_owned(),
        value => value.to_string(),
    }
}
