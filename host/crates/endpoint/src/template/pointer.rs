//! JSON pointers, all resolved in one pass over an event. Values that no pointer references are
//! skipped, and no tree of values is built.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::error::TemplateError;
use super::spec::Pointers;

/// The part of an answer that a pointer references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerTarget {
    Text,
    Reasoning,
    Finish,
    PromptTokens,
    OutputTokens,
    CachedTokens,
    ReasoningTokens,
    Error,
}

/// Receives every part that is found, in the order of the event's text.
pub(crate) trait PointerSink {
    /// Receives visible or reasoning text, borrowed from the event if it has no escapes.
    fn text(&mut self, target: PointerTarget, text: &str);
    /// Receives the finish reason.
    fn finish(&mut self, reason: &str);
    /// Receives a number of tokens.
    fn count(&mut self, target: PointerTarget, count: u64);
    /// Receives the value at the error pointer.
    fn error(&mut self, error: Value);
}

/// A checked JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer(Vec<String>);

impl Pointer {
    pub(crate) fn new(field: &'static str, pointer: &str) -> Result<Self, TemplateError> {
        let refuse = |reason| TemplateError::Pointer {
            field,
            pointer: pointer.to_owned(),
            reason,
        };
        if pointer.is_empty() {
            return Ok(Pointer(Vec::new()));
        }
        let Some(rest) = pointer.strip_prefix('/') else {
            return Err(refuse("it does not begin with `/`"));
        };
        let tokens = rest.split('/').map(|token| {
            let mut escapes = token.split('~').skip(1);
            if escapes.all(|escape| escape.starts_with(['0', '1'])) {
                // The order matters: `~01` becomes `~1` (RFC 6901, section 4).
                Ok(token.replace("~1", "/").replace("~0", "~"))
            } else {
                Err(refuse("`~` must be followed by `0` (for `~`) or `1` (for `/`)"))
            }
        });
        tokens.collect::<Result<_, _>>().map(Pointer)
    }
}

/// All pointers of a template as one tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    targets: Vec<PointerTarget>,
    /// Members of an object.
    members: Vec<(String, Walk)>,
    /// Elements of an array with an explicit index; each includes the contents of `every`.
    elements: Vec<(usize, Walk)>,
    /// All other elements of an array.
    every: Option<Box<Walk>>,
}

impl Walk {
    pub(crate) fn new(pointers: &Pointers) -> Result<Self, TemplateError> {
        let Pointers {
            text,
            reasoning,
            finish_reason,
            prompt_tokens,
            output_tokens,
            cached_tokens,
            reasoning_tokens,
            error,
            done: _,
        } = pointers;
        let mut walk = Walk::default();
        for (field, target, pointer) in [
            ("text", PointerTarget::Text, text),
            ("reasoning", PointerTarget::Reasoning, reasoning),
            ("finish_reason", PointerTarget::Finish, finish_reason),
            ("prompt_tokens", PointerTarget::PromptTokens, prompt_tokens),
            ("output_tokens", PointerTarget::OutputTokens, output_tokens),
            ("cached_tokens", PointerTarget::CachedTokens, cached_tokens),
            (
                "reasoning_tokens",
                PointerTarget::ReasoningTokens,
                reasoning_tokens,
            ),
            ("error", PointerTarget::Error, error),
        ] {
            if let Some(pointer) = pointer {
                walk.add(&Pointer::new(field, pointer)?.0, target);
            }
        }
        walk.share_every();
        Ok(walk)
    }

    fn add(&mut self, tokens: &[String], target: PointerTarget) {
        let Some((first, rest)) = tokens.split_first() else {
            self.targets.push(target);
            return;
        };
        child(&mut self.members, first.clone()).add(rest, target);
        if first == "*" {
            self.every.get_or_insert_default().add(rest, target);
        } else if let Some(index) = array_index(first) {
            child(&mut self.elements, index).add(rest, target);
        }
    }

    /// Merges `every` into each element with an explicit index.
    fn share_every(&mut self) {
        if let Some(every) = &mut self.every {
            every.share_every();
        }
        for (_, element) in &mut self.elements {
            if let Some(every) = &self.every {
                element.join(every);
            }
            element.share_every();
        }
        for (_, member) in &mut self.members {
            member.share_every();
        }
    }

    fn join(&mut self, other: &Walk) {
        self.targets.extend(&other.targets);
        for (name, walk) in &other.members {
            child(&mut self.members, name.clone()).join(walk);
        }
        for (index, walk) in &other.elements {
            child(&mut self.elements, *index).join(walk);
        }
        if let Some(every) = &other.every {
            self.every.get_or_insert_default().join(every);
        }
    }

    /// Reads one event and passes every referenced part to `found`.
    ///
    /// # Errors
    /// If the event is not valid JSON.
    pub(crate) fn read(&self, event: &str, found: &mut impl PointerSink) -> Result<(), serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(event);
        WalkStep { walk: self, found }.deserialize(&mut json)?;
        json.end()
    }

    fn element(&self, index: usize) -> Option<&Walk> {
        let named = self.elements.iter().find(|(at, _)| *at == index);
        named.map(|(_, walk)| walk).or(self.every.as_deref())
    }

    fn is_leaf(&self) -> bool {
        self.members.is_empty() && self.elements.is_empty() && self.every.is_none()
    }
}

/// Parses an index (RFC 6901, section 4): digits without a leading zero.
fn array_index(token: &str) -> Option<usize> {
    let digits = token == "0" || (!token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit()));
    token.parse().ok().filter(|_| digits)
}

fn child<K: PartialEq>(children: &mut Vec<(K, Walk)>, key: K) -> &mut Walk {
    let at = children.iter().position(|(known, _)| *known == key);
    let at = at.unwrap_or_else(|| {
        children.push((key, Walk::default()));
        children.len() - 1
    });
    &mut children[at].1
}

/// One value on a path.
struct WalkStep<'w, 'f, F> {
    walk: &'w Walk,
    found: &'f mut F,
}

impl<F: PointerSink> WalkStep<'_, '_, F> {
    fn each(&mut self, mut visit: impl FnMut(&mut F, PointerTarget)) {
        for target in &self.walk.targets {
            visit(self.found, *target);
        }
    }

    /// Passes on an array or an object at the error pointer, which is needed whole.
    fn whole<E: Error>(self, value: Value) -> Result<(), E> {
        let empty = match &value {
            Value::Object(members) => members.is_empty(),
            Value::Array(elements) => elements.is_empty(),
            _ => false,
        };
        if !empty {
            self.found.error(value.clone());
        }
        let further = Walk {
            targets: Vec::new(),
            ..self.walk.clone()
        };
        let step = WalkStep {
            walk: &further,
            found: self.found,
        };
        step.deserialize(value).map_err(E::custom)
    }

    fn wants_error(&self) -> bool {
        self.walk.targets.contains(&PointerTarget::Error)
    }
}

impl<'de, F: PointerSink> DeserializeSeed<'de> for WalkStep<'_, '_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: PointerSink> Visitor<'de> for WalkStep<'_, '_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        self.each(|found, target| match target {
            PointerTarget::Text | PointerTarget::Reasoning => found.text(target, text),
            PointerTarget::Finish if !text.is_empty() => found.finish(text),
            PointerTarget::Error if !text.is_empty() => found.error(Value::from(text)),
            _ => {}
        });
        Ok(())
    }

    fn visit_u64<E>(mut self, number: u64) -> Result<(), E> {
        self.each(|found, target| match target {
            PointerTarget::Finish => found.finish(&number.to_string()),
            PointerTarget::Error => found.error(Value::from(number)),
            PointerTarget::PromptTokens
            | PointerTarget::OutputTokens
            | PointerTarget::CachedTokens
            | PointerTarget::ReasoningTokens => {
                found.count(target, number);
            }
            PointerTarget::Text | PointerTarget::Reasoning => {}
        });
        Ok(())
    }

    fn visit_i64<E>(mut self, number: i64) -> Result<(), E> {
        self.each(|found, target| match target {
            PointerTarget::Finish => found.finish(&number.to_string()),
            PointerTarget::Error => found.error(Value::from(number)),
            _ => {}
        });
        Ok(())
    }

    fn visit_f64<E>(mut self, number: f64) -> Result<(), E> {
        self.each(|found, target| match target {
            PointerTarget::Finish => found.finish(&number.to_string()),
            PointerTarget::Error => found.error(Value::from(number)),
            _ => {}
        });
        Ok(())
    }

    fn visit_bool<E>(mut self, yes: bool) -> Result<(), E> {
        self.each(|found, target| match target {
            PointerTarget::Finish if yes => found.finish("true"),
            PointerTarget::Error if yes => found.error(Value::from(yes)),
            _ => {}
        });
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.wants_error() {
            let value = serde::Deserialize::deserialize(MapAccessDeserializer::new(map))?;
            return self.whole(value);
        }
        while let Some(member) = map.next_key_seed(MemberName(self.walk))? {
            match member {
                Some(walk) => map.next_value_seed(WalkStep {
                    walk,
                    found: &mut *self.found,
                })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if self.wants_error() {
            let value = serde::Deserialize::deserialize(SeqAccessDeserializer::new(seq))?;
            return self.whole(value);
        }
        if self.walk.is_leaf() {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let nothing = Walk::default();
        for index in 0.. {
            let walk = self.walk.element(index).unwrap_or(&nothing);
            let step = WalkStep {
                walk,
                found: &mut *self.found,
            };
            if seq.next_element_seed(step)?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// The name of a member, resolved to its subtree.
struct MemberName<'w>(&'w Walk);

impl<'de, 'w> DeserializeSeed<'de> for MemberName<'w> {
    type Value = Option<&'w Walk>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'w> Visitor<'_> for MemberName<'w> {
    type Value = Option<&'w Walk>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let members = &self.0.members;
        Ok(members
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, walk)| walk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log(Vec<String>);

    impl PointerSink for Log {
        fn text(&mut self, target: PointerTarget, text: &str) {
            self.0.push(format!("{target:?} {text}"));
        }
        fn finish(&mut self, reason: &str) {
            self.0.push(format!("Finish {reason}"));
        }
        fn count(&mut self, target: PointerTarget, count: u64) {
            self.0.push(format!("{target:?} {count}"));
        }
        fn error(&mut self, error: Value) {
            self.0.push(format!("Error {error}"));
        }
    }

    fn read(pointers: &Pointers, event: &str) -> Vec<String> {
        let mut log = Log::default();
        Walk::new(pointers).unwrap().read(event, &mut log).unwrap();
        log.0
    }

    fn text_at(pointer: &str) -> Pointers {
        Pointers {
            text: Some(pointer.to_owned()),
            ..Pointers::default()
        }
    }

    /// The example of RFC 6901, section 5: the members whose values are strings here.
    #[test]
    fn pointers_follow_the_standard() {
        let document = r#"{"foo":["bar","baz"],"":"0","a/b":"1","c%d":"2","e^f":"3","g|h":"4","i\\j":"5","k\"l":"6"," ":"7","m~n":"8"}"#;
        for (pointer, text) in [
            ("/foo/0", "bar"),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(
                read(&text_at(pointer), document),
                [format!("Text {text}")],
                "{pointer}"
            );
        }
        for nowhere in ["/foo/2", "/foo/00", "/foo/-", "/foo", "/bar", "/foo/0/0", ""] {
            assert!(read(&text_at(nowhere), document).is_empty(), "{nowhere}");
        }
        assert_eq!(read(&text_at(""), r#""all""#), ["Text all"]);
        assert_eq!(read(&text_at("/~01"), r#"{"~1":"x"}"#), ["Text x"]);
    }

    #[test]
    fn a_star_is_every_element_and_a_member_of_that_name() {
        let pointers = Pointers {
            text: Some("/a/*/t".into()),
            reasoning: Some("/a/1/t".into()),
            finish_reason: Some("/a/1/f".into()),
            ..Pointers::default()
        };
        assert_eq!(
            read(&pointers, r#"{"a":[{"t":"x"},{"t":"y","f":"end"},[],{"t":"z"}]}"#),
            ["Text x", "Reasoning y", "Text y", "Finish end", "Text z"]
        );
        assert_eq!(
            read(&pointers, r#"{"a":{"*":{"t":"x"},"0":{"t":"y"}}}"#),
            ["Text x"]
        );
    }

    #[test]
    fn parts_of_another_type_are_absent() {
        let pointers = Pointers {
            text: Some("/t".into()),
            finish_reason: Some("/f".into()),
            output_tokens: Some("/n".into()),
            error: Some("/e".into()),
            ..Pointers::default()
        };
        for (event, expected) in [
            (r#"{"t":1,"f":"","n":"3","e":null}"#, &[][..]),
            (r#"{"t":["x"],"f":false,"n":-1,"e":false}"#, &[]),
            (r#"{"t":{},"f":null,"n":1.5,"e":""}"#, &[]),
            (
                r#"{"t":"","f":true,"n":3,"e":[]}"#,
                &["Text ", "Finish true", "OutputTokens 3"],
            ),
            (r#"{"f":7,"e":"bad"}"#, &["Finish 7", "Error \"bad\""]),
            (r#"{"e":{"message":"m"}}"#, &["Error {\"message\":\"m\"}"]),
            (r#"[1]"#, &[]),
        ] {
            assert_eq!(read(&pointers, event), expected, "{event}");
        }
    }

    #[test]
    fn a_part_may_lie_inside_an_error() {
        let pointers = Pointers {
            text: Some("/e/t".into()),
            error: Some("/e".into()),
            ..Pointers::default()
        };
        assert_eq!(
            read(&pointers, r#"{"e":{"t":"x"}}"#),
            ["Error {\"t\":\"x\"}", "Text x"]
        );
    }

    #[test]
    fn refuses_invalid_pointer_by_name() {
        for pointer in ["a/b", "/a~", "/a~2"] {
            let error = Walk::new(&text_at(pointer)).unwrap_err().to_string();
            assert!(error.contains(&format!("text `{pointer}`")), "{error}");
        }
        let mut log = Log::default();
        assert!(
            Walk::new(&text_at("/a"))
                .unwrap()
                .read("{\"a\":1} x", &mut log)
                .is_err()
        );
    }
}
