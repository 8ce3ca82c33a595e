//! Phrases that the style guide replaces (`STYLE.md`).

use super::lexer;
use super::source::{Kind, Source, Sources};
use super::violation::{Rule, Violation};
use super::width;

/// A phrase in lower case, and its replacement.
const FORBIDDEN: [(&str, &str); 39] = [
    ("stands", "is, appears"),
    ("stand for", "represent"),
    ("stand there", "be present"),
    ("stand beside", "be next to"),
    ("stood", "was, appeared"),
    ("of its own", "custom, separate, dedicated"),
    ("of one's own", "custom, user-defined"),
    ("of their own", "custom, separate, dedicated"),
    ("of the user's own", "user-defined"),
    ("anew", "again, re-"),
    ("nobody", "the name of the component, or `no ...`"),
    ("somebody", "the name of the component"),
    ("so many", "the number of"),
    ("is told", "is notified, receives"),
    ("are told", "are notified, receive"),
    ("in words", "as text"),
    ("the words of", "the message of"),
    ("what it came to", "result"),
    ("therein", "in it"),
    ("whereof", "of which"),
    ("beside", "next to"),
    ("the house", "the project, architecture"),
    ("rooms", "modules"),
    ("floors", "layers"),
    ("has died", "panicked, exited"),
    ("have died", "panicked, exited"),
    ("tired", "timed out"),
    ("unwilling", "refused, cancelled"),
    ("door", "entry point"),
    ("doors", "entry points"),
    ("the like", "similar"),
    ("to whom", "to which"),
    ("look at", "read, inspect, see"),
    ("looks at", "reads, inspects"),
    ("looked at", "read, inspected"),
    ("says", "reports, prints, states"),
    ("tells", "reports, shows, returns"),
    ("hears", "receives"),
    ("no figure", "not a number"),
];

/// Words after `is no` that make it ordinary English.
const COMPARISONS: [&str; 20] = [
    "longer",
    "more",
    "less",
    "fewer",
    "other",
    "different",
    "better",
    "worse",
    "later",
    "earlier",
    "sooner",
    "greater",
    "larger",
    "smaller",
    "higher",
    "lower",
    "faster",
    "slower",
    "shorter",
    "one",
];

/// Returns the uses of forbidden phrases in comments, strings and prose.
pub(super) fn forbidden(sources: &Sources) -> Vec<Violation> {
    let mut found = Vec::new();
    // The list itself, and the page that explains it.
    let is_source_of_rules = |path: &str| path == "STYLE.md" || path == "xtask/src/tidy/phrases.rs";
    for file in sources
        .files()
        .iter()
        .filter(|file| !is_source_of_rules(&file.path))
    {
        for passage in passages(file) {
            scan(&passage, &mut |line, phrase, replacement| {
                found.push(Violation {
                    rule: Rule::Phrase,
                    path: file.path.clone(),
                    line,
                    subject: phrase.to_owned(),
                    message: format!("`{phrase}`: write {replacement}"),
                });
            });
        }
    }
    found
}

/// Words that belong together, each with its line: a comment block, a literal, a paragraph.
type Passage = Vec<(String, usize)>;

fn scan(passage: &Passage, report: &mut impl FnMut(usize, &str, &str)) {
    let word = |at: usize| passage.get(at).map(|(word, _)| word.as_str());
    for (at, (first, line)) in passage.iter().enumerate() {
        for (phrase, replacement) in FORBIDDEN {
            if !phrase.starts_with(first.as_str()) {
                continue;
            }
            let matches = phrase
                .split(' ')
                .enumerate()
                .all(|(offset, part)| word(at + offset) == Some(part));
            if matches {
                report(*line, phrase, replacement);
            }
        }
        let is_no = ["is", "are", "was", "were"].contains(&first.as_str()) && word(at + 1) == Some("no");
        let is_there = at
            .checked_sub(1)
            .and_then(word)
            .is_some_and(|before| before == "there");
        let is_comparison = word(at + 2).is_none_or(|next| COMPARISONS.contains(&next));
        if is_no && !is_there && !is_comparison {
            report(*line, "is no", "`is not a ...`");
        }
    }
}

fn passages(file: &Source) -> Vec<Passage> {
    match file.kind {
        Kind::Rust => rust(file),
        Kind::Markdown => {
            let prose = width::markdown(&file.text);
            let tables = file
                .text
                .lines()
                .enumerate()
                .filter(|(_, line)| line.trim_start().starts_with('|'))
                .map(|(at, _)| at + 1);
            let mut lines: Vec<usize> = prose.into_iter().chain(tables).collect();
            lines.sort_unstable();
            whole(&file.text, &lines)
        }
        _ => whole(&file.text, &(1..=file.text.lines().count()).collect::<Vec<_>>()),
    }
}

/// The given lines of a text, of which consecutive ones are one passage up to an empty one.
fn whole(text: &str, lines: &[usize]) -> Vec<Passage> {
    let all: Vec<&str> = text.lines().collect();
    let mut found = vec![Passage::new()];
    let mut last = 0;
    for &line in lines {
        let text = all.get(line - 1).copied().unwrap_or_default();
        if line != last + 1 || text.trim().is_empty() {
            found.push(Passage::new());
        }
        last = line;
        if let Some(passage) = found.last_mut() {
            words(text, line, passage);
        }
    }
    found
}

fn rust(file: &Source) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    let mut last_comment = 0;
    for token in file.tokens() {
        match token.kind {
            lexer::Kind::Comment => {
                if found.is_empty() || token.line != last_comment + 1 {
                    found.push(Passage::new());
                }
                last_comment = token.line;
                if let Some(passage) = found.last_mut() {
                    words(token.text, token.line, passage);
                }
            }
            lexer::Kind::Text => {
                let mut passage = Passage::new();
                for (offset, line) in token.text.split('\n').enumerate() {
                    words(line, token.line + offset, &mut passage);
                }
                found.push(passage);
                last_comment = 0;
            }
            _ => last_comment = 0,
        }
    }
    found
}

/// Appends the words of a line in lower case, without code between backticks.
fn words(line: &str, number: usize, passage: &mut Passage) {
    for (at, part) in line.split('`').enumerate() {
        if at % 2 == 1 {
            // A word that matches no phrase keeps the words around it apart.
            passage.push(("`".into(), number));
            continue;
        }
        let parts = part.split(|character: char| {
            !(character.is_alphanumeric() || ['\'', '-', '_', '.', '/'].contains(&character))
        });
        for word in parts {
            let word = word.trim_matches(['\'', '-', '.', '/']);
            if !word.is_empty() {
                passage.push((word.to_lowercase(), number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(String, usize)> {
        forbidden(&Sources::of(&[(path, text)]))
            .into_iter()
            .map(|violation| (violation.subject, violation.line))
            .collect()
    }

    #[test]
    fn finds_phrases_across_the_lines_of_a_comment_and_in_strings() {
        let text = "/// A pool of\n/// its own.\nfn f() { g(\"x is no list\"); anew(); }";
        assert_eq!(
            found("c/src/lib.rs", text),
            [("of its own".to_owned(), 1), ("is no".to_owned(), 3)]
        );
    }

    #[test]
    fn accepts_ordinary_uses_of_no_and_code() {
        let text = "It is no longer there. There is no file. A stand-in, `nobody`, a headroom.";
        assert!(found("a.md", text).is_empty());
    }

    #[test]
    fn reads_tables_but_not_code_blocks() {
        assert_eq!(
            found("a.md", "| a | anew |\n```\nnobody\n```\n"),
            [("anew".to_owned(), 1)]
        );
    }
}
