//! The text that a chat template writes around messages of given roles, independent of their
//! contents.
//!
//! Rendering a template costs some ten microseconds, as much as writing hundreds of synthetic
//! tokens. So the text around the messages is taken from one rendering in which each message is a
//! word that occurs nowhere else, and verified with others.

use veeksha_model::Role;

use crate::count::BuiltText;
use crate::template::ChatTemplate;

/// The texts before, between and after the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptSkeleton {
    /// Before each message, in the order in which the template writes them.
    before: Vec<String>,
    /// The index of the message at each position.
    order: Vec<usize>,
    behind: String,
}

impl PromptSkeleton {
    /// Returns `None` if the template does not write every message of plain words exactly once and
    /// unchanged.
    ///
    /// `history` is the previous conversation; `word` is a word that may be at any position.
    pub(crate) fn of(
        template: &ChatTemplate,
        history: &[(Role, &str)],
        roles: &[Role],
        word: &str,
    ) -> Option<PromptSkeleton> {
        let render = |contents: &[String]| {
            let new = roles
                .iter()
                .zip(contents)
                .map(|(role, text)| (*role, text.as_str()));
            let messages: Vec<(Role, &str)> = history.iter().copied().chain(new).collect();
            template.render(&messages, true).ok()
        };
        let marks: Vec<String> = (0..roles.len()).map(mark).collect();
        let text = render(&marks)?;
        let mut found = Vec::with_capacity(marks.len());
        for (message, mark) in marks.iter().enumerate() {
            let mut places = text.match_indices(mark.as_str());
            match (places.next(), places.next()) {
                (Some((at, _)), None) => found.push((at, message)),
                _ => return None,
            }
        }
        found.sort_unstable();
        let mut skeleton = PromptSkeleton {
            before: Vec::with_capacity(found.len()),
            order: Vec::with_capacity(found.len()),
            behind: String::new(),
        };
        let mut end = 0;
        for (at, message) in found {
            skeleton.before.push(text[end..at].to_string());
            skeleton.order.push(message);
            end = at + marks[message].len();
        }
        skeleton.behind = text[end..].to_string();
        // Short and long messages, all different.
        let holds = [1, 40].into_iter().all(|length| {
            let contents: Vec<String> = (0..roles.len())
                .map(|message| vec![word; length + message % 3].join(" "))
                .collect();
            let built: Vec<BuiltText> = contents
                .iter()
                .map(|text| BuiltText::synthetic(text.as_str().into()))
                .collect();
            let built: Vec<&BuiltText> = built.iter().collect();
            render(&contents).as_deref() == Some(&*skeleton.assemble(&built).text)
        });
        holds.then_some(skeleton)
    }

    /// Returns the whole text for these messages.
    pub(crate) fn assemble(&self, messages: &[&BuiltText]) -> BuiltText {
        let around: usize = self.before.iter().map(String::len).sum();
        let inside: usize = messages.iter().map(|message| message.text.len()).sum();
        let mut text = String::with_capacity(around + inside + self.behind.len());
        let mut stretches = Vec::new();
        for (before, message) in self.before.iter().zip(&self.order) {
            text.push_str(before);
            let message = messages[*message];
            let shift = text.len();
            stretches.extend(
                message
                    .stretches
                    .iter()
                    .map(|(start, end)| (start + shift, end + shift)),
            );
            text.push_str(&message.text);
        }
        text.push_str(&self.behind);
        BuiltText {
            text: text.into(),
            stretches,
        }
    }
}

/// Returns a marker for message `index`: plain letters, so that templates do not treat it
/// specially, and not a word of any language.
fn mark(index: usize) -> String {
    let mut mark = String::from("qzxj");
    let mut rest = index;
    for _ in 0..4 {
        mark.push(char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    mark.push_str("vkqz");
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> ChatTemplate {
        ChatTemplate::from_text("test", text, Default::default()).unwrap()
    }

    #[test]
    fn finds_the_text_around_messages() {
        let template = template(
            "<s>{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}\n{% endfor %}{% if add_generation_prompt %}[go]{% endif %}",
        );
        let skeleton = PromptSkeleton::of(
            &template,
            &[(Role::User, "hi")],
            &[Role::System, Role::User],
            "word",
        )
        .unwrap();
        assert_eq!(skeleton.before, ["<s>[user] hi\n[system] ", "\n[user] "]);
        assert_eq!(
            (skeleton.order.as_slice(), skeleton.behind.as_str()),
            (&[0, 1][..], "\n[go]")
        );
        let one = BuiltText::synthetic("a b".into());
        let two = BuiltText {
            text: "see: c".into(),
            stretches: vec![(4, 6)],
        };
        let whole = skeleton.assemble(&[&one, &two]);
        assert_eq!(&*whole.text, "<s>[user] hi\n[system] a b\n[user] see: c\n[go]");
        let synthetic: Vec<&str> = whole
            .stretches
            .iter()
            .map(|(start, end)| &whole.text[*start..*end])
            .collect();
        assert_eq!(synthetic, ["a b", " c"]);
    }

    #[test]
    fn supports_reordered_messages() {
        // Mistral's template does this with the system message.
        let template = template("{{ messages[1].content }}|{{ messages[0].content }}");
        let skeleton = PromptSkeleton::of(&template, &[], &[Role::System, Role::User], "word").unwrap();
        assert_eq!(skeleton.order, [1, 0]);
    }

    #[test]
    fn refuses_templates_that_depend_on_contents() {
        let of = |text: &str| PromptSkeleton::of(&template(text), &[], &[Role::User], "word");
        assert_eq!(of("{{ messages[0].content }} {{ messages[0].content }}"), None);
        assert_eq!(of("nothing"), None);
        assert_eq!(of("{{ raise_exception('no') }}"), None);
        assert_eq!(of("{{ messages[0].content | upper }}"), None);
        assert_eq!(
            of("{% if messages[0].content | length > 100 %}long: {% endif %}{{ messages[0].content }}"),
            None
        );
        assert!(of("{{ messages[0].content }}").is_some());
    }
}
