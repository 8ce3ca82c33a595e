//! Parses YAML (and thus JSON) into a tree with line numbers.
//!
//! Built on the parser's events, because its ready-made trees drop what a scenario needs: the line
//! of every node, duplicate keys, unknown tags, and a limit on the expansion of aliases.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use saphyr::Scalar;
use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use crate::error::ScenarioError;
use crate::include::{Includes, Refusal};
use crate::tree::{Node, Place, Value};

const MAX_TEXT_BYTES: usize = 10 * 1024 * 1024;
/// Maximum weight of the finished tree, with aliases and included files expanded.
const MAX_WEIGHT: usize = 1_000_000;
/// A text weighs one more per this number of bytes, so that a tree's weight bounds its memory.
const BYTES_PER_WEIGHT: usize = 64;
/// Maximum nesting: more than any schema needs, and well within the stack of everything that walks
/// a tree.
const MAX_DEPTH: usize = 96;
/// The tags defined by scenario files.
const TAGS: [&str; 2] = ["!expand", "!include"];

/// Reads one YAML document: a scenario or an included file. An empty document is null. `file` is
/// its path, which messages name.
pub(crate) fn read(text: &str, file: &Path, includes: &mut Includes<'_>) -> Result<Node, ScenarioError> {
    let name = file.display().to_string();
    if text.len() > MAX_TEXT_BYTES {
        return Err(ScenarioError::TooLarge {
            file: name,
            bytes: text.len(),
        });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = YamlReader::new(&name, includes);
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| ScenarioError::Yaml {
            file: name.clone(),
            line: line(error.marker().line()),
            message: error.info().to_owned(),
        })?;
        if matches!(event, Event::DocumentStart(_)) {
            documents += 1;
            if documents > 1 {
                let message = "a second document begins here; a scenario is one document, and several scenarios are a list";
                return Err(reader.form(span, message));
            }
        }
        reader.take(event, span)?;
    }
    Ok(reader.finished.unwrap_or_else(|| {
        let file = name.into();
        Node::at(Value::Null, Place { file, line: 1 })
    }))
}

/// Reads one YAML value, as given to `--set KEY=`. Its errors have no place, since there is no
/// file.
pub(crate) fn read_value(text: &str) -> Result<Node, String> {
    let mut nothing = |_: &Path| Err("a value of the command line cannot include a file".to_owned());
    let mut includes = Includes::new(Path::new(""), &mut nothing);
    let mut reader = YamlReader::new("", &mut includes);
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| format!("not valid YAML: {}", error.info()))?;
        documents += usize::from(matches!(event, Event::DocumentStart(_)));
        if documents > 1 {
            return Err("it contains a second document".to_owned());
        }
        reader.take(event, span).map_err(|error| match error {
            ScenarioError::Form { message, .. } => message,
            other => other.to_string(),
        })?;
    }
    let mut node = reader.finished.unwrap_or_else(|| Node::new(Value::Null));
    clear_places(&mut node);
    Ok(node)
}

fn clear_places(node: &mut Node) {
    node.place = None;
    match &mut node.value {
        Value::List(items) | Value::Expand(items) => items.iter_mut().for_each(clear_places),
        Value::Map(entries) => entries.iter_mut().for_each(|(_, node)| clear_places(node)),
        _ => {}
    }
}

fn line(line: usize) -> u32 {
    u32::try_from(line.max(1)).unwrap_or(u32::MAX)
}

/// A collection that is still being read.
struct OpenCollection {
    anchor: usize,
    place: Place,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    /// `!expand`: the list's items are alternatives.
    Expand(Vec<Node>),
    Map {
        entries: Vec<(String, Node)>,
        merged: Vec<Node>,
        key: Option<Key>,
        seen: HashMap<String, u32>,
    },
}

enum Key {
    /// The name and its line, which is also the place of the entry's value.
    Name(String, u32),
    /// `<<`: merges the entries of its value; keys already in the map win.
    Merge,
}

struct YamlReader<'r, 'f> {
    file: Arc<str>,
    includes: &'r mut Includes<'f>,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, (Node, usize)>,
    weight: usize,
    finished: Option<Node>,
}

impl<'r, 'f> YamlReader<'r, 'f> {
    fn new(file: &str, includes: &'r mut Includes<'f>) -> Self {
        YamlReader {
            file: file.into(),
            includes,
            open: Vec::new(),
            anchors: HashMap::new(),
            weight: 0,
            finished: None,
        }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), ScenarioError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), span)
            }
            Event::SequenceStart(anchor, Some(tag)) if is(&tag, "!expand") => {
                self.begin(anchor, Content::Expand(Vec::new()), span)
            }
            Event::SequenceStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "seq", span)?;
                self.begin(anchor, Content::List(Vec::new()), span)
            }
            Event::MappingStart(anchor, tag) => {
                self.collection_tag(tag.as_deref(), "map", span)?;
                let content = Content::Map {
                    entries: Vec::new(),
                    merged: Vec::new(),
                    key: None,
                    seen: HashMap::new(),
                };
                self.begin(anchor, content, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(anchor) => {
                let Some((node, weight)) = self.anchors.get(&anchor).cloned() else {
                    return Err(self.form(span, "this alias is inside the value that it refers to"));
                };
                self.count(weight, span)?;
                if self.open.len() + depth(&node) > MAX_DEPTH {
                    return Err(self.too_deep(span));
                }
                self.put(node, span)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<(), ScenarioError> {
        self.count(text_weight(text), span)?;
        if let Some(tag) = tag
            && is(tag, "!include")
        {
            return self.include(text, anchor, span);
        }
        if let Some(tag) = tag
            && !tag.is_yaml_core_schema()
        {
            // A lone `!` means "as text".
            if tag.handle.is_empty() && tag.suffix == "!" || tag.handle == "!" && tag.suffix.is_empty() {
                let node = Node::at(Value::Text(text.to_owned()), self.place(span));
                return self.put(node, span);
            }
            return Err(self.unknown_tag(tag, span));
        }
        let tag = tag.map(|tag| std::borrow::Cow::Owned(tag.clone()));
        // An explicit `!!str` (or a wrong one such as `!!int x`) follows the library's rules.
        let value = match Scalar::parse_from_cow_and_metadata(text.into(), style, tag.as_ref()) {
            Some(Scalar::Null) => Value::Null,
            Some(Scalar::Boolean(value)) => Value::Bool(value),
            Some(Scalar::Integer(value)) => Value::Int(value),
            Some(Scalar::FloatingPoint(value)) => Value::Float(value.into_inner()),
            Some(Scalar::String(text)) => Value::Text(text.into_owned()),
            None => {
                let tag = tag.map_or_else(String::new, |tag| tag.suffix.clone());
                return Err(self.form(span, &format!("`{text}` does not match its tag `!!{tag}`")));
            }
        };
        if self.awaits_key() {
            return self.key(text, style, &value, span);
        }
        let node = Node::at(value, self.place(span));
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), text_weight(text)));
        }
        self.put(node, span)
    }

    /// Puts the contents of another file in place of the tag.
    fn include(&mut self, name: &str, anchor: usize, span: Span) -> Result<(), ScenarioError> {
        if self.awaits_key() {
            return Err(self.form(span, "a key must be a single word, not an included file"));
        }
        let node = match self.includes.open(name, read) {
            Ok(node) => node,
            Err(Refusal::Here(message)) => return Err(self.form(span, &message)),
            Err(Refusal::Within(error)) => return Err(error),
        };
        let weight = weight(&node);
        self.count(weight, span)?;
        if self.open.len() + depth(&node) > MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), weight));
        }
        self.put(node, span)
    }

    /// Returns true if a key of the innermost table comes next.
    fn awaits_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(OpenCollection {
                content: Content::Map { key: None, .. },
                ..
            })
        )
    }

    fn key(
        &mut self,
        text: &str,
        style: ScalarStyle,
        value: &Value,
        span: Span,
    ) -> Result<(), ScenarioError> {
        let at = line(span.start.line());
        if matches!(value, Value::Null) {
            return Err(self.form(span, "a key is missing before the colon"));
        }
        let Some(OpenCollection {
            content: Content::Map { key, seen, .. },
            ..
        }) = self.open.last_mut()
        else {
            return Ok(());
        };
        if text == "<<" && style == ScalarStyle::Plain {
            *key = Some(Key::Merge);
            return Ok(());
        }
        if let Some(first) = seen.insert(text.to_owned(), at) {
            let message = format!("the key `{text}` is a duplicate; the first is on line {first}");
            return Err(self.form(span, &message));
        }
        *key = Some(Key::Name(text.to_owned(), at));
        Ok(())
    }

    fn begin(&mut self, anchor: usize, content: Content, span: Span) -> Result<(), ScenarioError> {
        self.count(1, span)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        if self.awaits_key() {
            return Err(self.form(span, "a key must be a single word, not a list or a table"));
        }
        let place = self.place(span);
        self.open.push(OpenCollection {
            anchor,
            place,
            content,
        });
        Ok(())
    }

    fn end(&mut self, span: Span) -> Result<(), ScenarioError> {
        let Some(OpenCollection {
            anchor,
            place,
            content,
        }) = self.open.pop()
        else {
            return Ok(());
        };
        let value = match content {
            Content::List(items) => Value::List(items),
            Content::Expand(items) if items.is_empty() => {
                return Err(ScenarioError::Form {
                    file: self.file.to_string(),
                    line: place.line,
                    message: "`!expand` is empty; give at least one value".to_owned(),
                });
            }
            Content::Expand(items) => Value::Expand(items),
            Content::Map {
                mut entries,
                merged,
                mut seen,
                ..
            } => {
                for source in merged {
                    let Value::Map(more) = source.value else {
                        let message = match source.value {
                            Value::Expand(_) => {
                                "`<<` takes a table, or a list of tables; put `!expand` on the keys that differ, or on \
                                 the whole table"
                            }
                            _ => "`<<` takes a table, or a list of tables",
                        };
                        let place = source.place.unwrap_or(place);
                        return Err(ScenarioError::Form {
                            file: place.file.to_string(),
                            line: place.line,
                            message: message.to_owned(),
                        });
                    };
                    for (key, node) in more {
                        if let std::collections::hash_map::Entry::Vacant(free) = seen.entry(key.clone()) {
                            free.insert(0);
                            entries.push((key, node));
                        }
                    }
                }
                Value::Map(entries)
            }
        };
        let node = Node::at(value, place);
        if anchor > 0 {
            let weight = weight(&node);
            self.anchors.insert(anchor, (node.clone(), weight));
        }
        self.put(node, span)
    }

    fn put(&mut self, node: Node, span: Span) -> Result<(), ScenarioError> {
        let file = Arc::clone(&self.file);
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.finished = Some(node),
            Some(Content::List(items) | Content::Expand(items)) => items.push(node),
            Some(Content::Map {
                entries, merged, key, ..
            }) => match key.take() {
                Some(Key::Name(name, line)) => {
                    let place = Some(Place { file, line });
                    entries.push((name, Node { place, ..node }));
                }
                Some(Key::Merge) => match node.value {
                    Value::List(items) => merged.extend(items),
                    _ => merged.push(node),
                },
                None => return Err(self.form(span, "a key must be a single word, not an alias or a table")),
            },
        }
        Ok(())
    }

    fn count(&mut self, weight: usize, span: Span) -> Result<(), ScenarioError> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > MAX_WEIGHT {
            return Err(self.form(
                span,
                "the scenario has more than a million values, its aliases and included files expanded (a long text counts \
                 as several)",
            ));
        }
        Ok(())
    }

    fn collection_tag(&self, tag: Option<&Tag>, expected: &str, span: Span) -> Result<(), ScenarioError> {
        match tag {
            Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == expected) => {
                Err(self.unknown_tag(tag, span))
            }
            _ => Ok(()),
        }
    }

    fn unknown_tag(&self, tag: &Tag, span: Span) -> ScenarioError {
        let name = format!("{}{}", tag.handle, tag.suffix);
        let message = match name.as_str() {
            "!expand" => "`!expand` takes a list of values: `!expand [1, 2, 4]`".to_owned(),
            "!include" => "`!include` takes the name of a file: `!include other.yml`".to_owned(),
            _ => match veeksha_slo::nearest(&name, TAGS) {
                Some(meant) => format!("the tag `{name}` is unknown; did you mean `{meant}`?"),
                None => format!("the tag `{name}` is unknown; remove it"),
            },
        };
        self.form(span, &message)
    }

    fn too_deep(&self, span: Span) -> ScenarioError {
        self.form(span, &format!("values are nested more than {MAX_DEPTH} deep"))
    }

    fn form(&self, span: Span, message: &str) -> ScenarioError {
        ScenarioError::Form {
            file: self.file.to_string(),
            line: line(span.start.line()),
            message: message.to_owned(),
        }
    }

    fn place(&self, span: Span) -> Place {
        Place {
            file: Arc::clone(&self.file),
            line: line(span.start.line()),
        }
    }
}

/// Returns true for a local tag with this name.
fn is(tag: &Tag, name: &str) -> bool {
    !tag.is_yaml_core_schema() && name.strip_prefix(tag.handle.as_str()) == Some(tag.suffix.as_str())
}

fn text_weight(text: &str) -> usize {
    1 + text.len() / BYTES_PER_WEIGHT
}

/// Returns the weight of a tree: one per value, and more for long texts.
pub(crate) fn weight(node: &Node) -> usize {
    match &node.value {
        Value::Text(text) | Value::Word(text) => text_weight(text),
        Value::List(items) | Value::Expand(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Map(entries) => {
            1 + entries
                .iter()
                .map(|(key, node)| text_weight(key) - 1 + weight(node))
                .sum::<usize>()
        }
        _ => 1,
    }
}

/// Returns the depth of a tree; a scalar has depth 0.
fn depth(node: &Node) -> usize {
    match &node.value {
        Value::List(items) | Value::Expand(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Map(entries) => 1 + entries.iter().map(|(_, node)| depth(node)).max().unwrap_or(0),
        _ => 0,
    }
}
