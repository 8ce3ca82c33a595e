//! Reading YAML (and with it JSON) into a tree with lines.
//!
//! Built on the parser's events, because a scenario needs what its ready-made trees drop: the line of every node,
//! duplicate keys, tags that are not understood, and a bound on what aliases may expand to.

use std::collections::HashMap;
use std::sync::Arc;

use saphyr::Scalar;
use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use crate::{Node, Place, ScenarioError, Value};

const LARGEST_TEXT: usize = 10 * 1024 * 1024;
/// Nodes of the finished tree, expanded aliases included.
const MOST_NODES: usize = 1_000_000;
/// Deeper than any schema; keeps everything that walks a tree well inside its stack.
const DEEPEST: usize = 96;

/// Reads one YAML document. An empty one is an empty map.
pub(crate) fn read(text: &str, file: &str) -> Result<Node, ScenarioError> {
    if text.len() > LARGEST_TEXT {
        return Err(ScenarioError::TooLarge {
            file: file.to_owned(),
            bytes: text.len(),
        });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        file: file.into(),
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        finished: None,
    };
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| ScenarioError::Yaml {
            file: file.to_owned(),
            line: line(error.marker().line()),
            message: error.info().to_owned(),
        })?;
        if matches!(event, Event::DocumentStart(_)) {
            documents += 1;
            if documents > 1 {
                return Err(reader.form(span, "a second document begins here; a scenario is one document"));
            }
        }
        reader.take(event, span)?;
    }
    let root = reader.finished.unwrap_or_else(|| Node::new(Value::Null));
    match root.value {
        Value::Null => Ok(Node {
            value: Value::Map(Vec::new()),
            place: root.place,
        }),
        Value::List(_) => Err(ScenarioError::Form {
            file: file.to_owned(),
            line: root.place.map_or(1, |place| place.line),
            message: "a list of configurations (a sweep) is not supported by this version yet; write one \
                      configuration"
                .to_owned(),
        }),
        value => Ok(Node {
            value,
            place: root.place,
        }),
    }
}

/// Reads one YAML value, as it stands after `--set KEY=`. The message of an error has no place: there is no file.
pub(crate) fn read_value(text: &str) -> Result<Node, String> {
    let mut reader = Reader {
        file: "".into(),
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        finished: None,
    };
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| format!("not valid YAML: {}", error.info()))?;
        documents += usize::from(matches!(event, Event::DocumentStart(_)));
        if documents > 1 {
            return Err("it holds a second document".to_owned());
        }
        reader.take(event, span).map_err(|error| match error {
            ScenarioError::Form { message, .. } => message,
            other => other.to_string(),
        })?;
    }
    let mut node = reader.finished.unwrap_or_else(|| Node::new(Value::Null));
    forget_places(&mut node);
    Ok(node)
}

fn forget_places(node: &mut Node) {
    node.place = None;
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(forget_places),
        Value::Map(entries) => entries.iter_mut().for_each(|(_, node)| forget_places(node)),
        _ => {}
    }
}

fn line(line: usize) -> u32 {
    u32::try_from(line.max(1)).unwrap_or(u32::MAX)
}

/// A collection whose end has not come yet.
struct Open {
    anchor: usize,
    place: Place,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<(String, Node)>,
        merged: Vec<Node>,
        key: Option<Key>,
        seen: HashMap<String, u32>,
    },
}

enum Key {
    /// The name, and the line it is on: what the entry's value is known by.
    Name(String, u32),
    /// `<<`: the entries of its value are added where the map does not have them.
    Merge,
}

struct Reader {
    file: Arc<str>,
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    finished: Option<Node>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), ScenarioError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), span)
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
                let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
                    return Err(self.form(span, "this alias stands inside the value that it refers to"));
                };
                self.count(size, span)?;
                if self.open.len() + depth(&node) > DEEPEST {
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
        self.count(1, span)?;
        if let Some(tag) = tag
            && !tag.is_yaml_core_schema()
        {
            // A lone `!` says "as text".
            if tag.handle.is_empty() && tag.suffix == "!" || tag.handle == "!" && tag.suffix.is_empty() {
                let node = Node::at(Value::Text(text.to_owned()), self.place(span));
                return self.put(node, span);
            }
            return Err(self.unknown_tag(tag, span));
        }
        let tag = tag.map(|tag| std::borrow::Cow::Owned(tag.clone()));
        // An explicit `!!str` (or a wrong one such as `!!int x`) goes through the library's own rules.
        let value = match Scalar::parse_from_cow_and_metadata(text.into(), style, tag.as_ref()) {
            Some(Scalar::Null) => Value::Null,
            Some(Scalar::Boolean(value)) => Value::Bool(value),
            Some(Scalar::Integer(value)) => Value::Int(value),
            Some(Scalar::FloatingPoint(value)) => Value::Float(value.into_inner()),
            Some(Scalar::String(text)) => Value::Text(text.into_owned()),
            None => {
                let tag = tag.map_or_else(String::new, |tag| tag.suffix.clone());
                return Err(self.form(span, &format!("`{text}` does not fit its tag `!!{tag}`")));
            }
        };
        let awaits_key = matches!(
            self.open.last(),
            Some(Open {
                content: Content::Map { key: None, .. },
                ..
            })
        );
        if awaits_key {
            return self.key(text, style, &value, span);
        }
        let node = Node::at(value, self.place(span));
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), 1));
        }
        self.put(node, span)
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
        let Some(Open {
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
            let message = format!("the key `{text}` stands here a second time; the first is on line {first}");
            return Err(self.form(span, &message));
        }
        *key = Some(Key::Name(text.to_owned(), at));
        Ok(())
    }

    fn begin(&mut self, anchor: usize, content: Content, span: Span) -> Result<(), ScenarioError> {
        self.count(1, span)?;
        if self.open.len() >= DEEPEST {
            return Err(self.too_deep(span));
        }
        if matches!(
            self.open.last(),
            Some(Open {
                content: Content::Map { key: None, .. },
                ..
            })
        ) {
            return Err(self.form(span, "a key must be a single word, not a list or a table"));
        }
        let place = self.place(span);
        self.open.push(Open {
            anchor,
            place,
            content,
        });
        Ok(())
    }

    fn end(&mut self, span: Span) -> Result<(), ScenarioError> {
        let Some(Open {
            anchor,
            place,
            content,
        }) = self.open.pop()
        else {
            return Ok(());
        };
        let value = match content {
            Content::List(items) => Value::List(items),
            Content::Map {
                mut entries,
                merged,
                mut seen,
                ..
            } => {
                for source in merged {
                    let Value::Map(more) = source.value else {
                        return Err(ScenarioError::Form {
                            file: self.file.to_string(),
                            line: source.place.map_or(1, |place| place.line),
                            message: "`<<` takes a table, or a list of tables".to_owned(),
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
            let size = size(&node);
            self.anchors.insert(anchor, (node.clone(), size));
        }
        self.put(node, span)
    }

    fn put(&mut self, node: Node, span: Span) -> Result<(), ScenarioError> {
        let file = Arc::clone(&self.file);
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.finished = Some(node),
            Some(Content::List(items)) => items.push(node),
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

    fn count(&mut self, nodes: usize, span: Span) -> Result<(), ScenarioError> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MOST_NODES {
            return Err(self.form(
                span,
                "the scenario has more than a million values, its aliases expanded",
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
            "!expand" => {
                "`!expand` (a sweep) is not supported by this version yet; write one value".to_owned()
            }
            "!include" => {
                "`!include` is not supported by this version yet; copy the file's content here".to_owned()
            }
            _ => format!("the tag `{name}` is unknown; remove it"),
        };
        self.form(span, &message)
    }

    fn too_deep(&self, span: Span) -> ScenarioError {
        self.form(span, &format!("values are nested more than {DEEPEST} deep"))
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

/// How many nodes a tree has.
fn size(node: &Node) -> usize {
    1 + match &node.value {
        Value::List(items) => items.iter().map(size).sum(),
        Value::Map(entries) => entries.iter().map(|(_, node)| size(node)).sum(),
        _ => 0,
    }
}

/// How deep a tree is; a scalar is 0 deep.
fn depth(node: &Node) -> usize {
    match &node.value {
        Value::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Map(entries) => 1 + entries.iter().map(|(_, node)| depth(node)).max().unwrap_or(0),
        _ => 0,
    }
}
