//! Lines of comments and prose past the column limit.

use super::lexer;
use super::source::{Kind, Source, Sources};
use super::violation::{Rule, Violation};

/// Columns of a line with a comment or of prose. Code has rustfmt's limit.
const WIDEST: usize = 100;

/// Returns the lines past [`WIDEST`], without those that hold an address or a table row.
pub(super) fn wide(sources: &Sources) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in sources.files() {
        let lines: Vec<&str> = file.text.lines().collect();
        for line in prose(file) {
            let text = lines.get(line - 1).copied().unwrap_or_default();
            let columns = text.chars().count();
            let has_address = text.contains("://");
            if columns > WIDEST && !has_address {
                found.push(Violation {
                    rule: Rule::Width,
                    path: file.path.clone(),
                    line,
                    subject: columns.to_string(),
                    message: format!("{columns} columns; wrap at {WIDEST}"),
                });
            }
        }
    }
    found
}

/// The lines of a file that hold comments or prose.
fn prose(file: &Source) -> Vec<usize> {
    let lines = file.text.lines().enumerate();
    match file.kind {
        Kind::Rust => {
            let tokens = file.tokens();
            let comments = tokens
                .iter()
                .filter(|token| token.kind == lexer::Kind::Comment && !is_table(token.text));
            comments.map(|token| token.line).collect()
        }
        Kind::Wit => lines
            .filter(|(_, line)| line.contains("//"))
            .map(|(at, _)| at + 1)
            .collect(),
        Kind::Lua => lines
            .filter(|(_, line)| {
                let line = line.trim_start();
                // LuaLS reads an annotation up to the end of its line.
                line.starts_with("--") && !line.starts_with("---@")
            })
            .map(|(at, _)| at + 1)
            .collect(),
        Kind::Markdown => markdown(&file.text),
        Kind::Other => Vec::new(),
    }
}

/// Returns true for a row of a table in a doc comment.
fn is_table(comment: &str) -> bool {
    comment.trim_start_matches(['/', '!', ' ']).starts_with('|')
}

/// The lines of Markdown that are neither code nor a table nor an image.
pub(super) fn markdown(text: &str) -> Vec<usize> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        if !is_code && !start.starts_with('|') && !start.starts_with("![") {
            found.push(at + 1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        wide(&Sources::of(&[(path, text)]))
            .iter()
            .map(|violation| violation.line)
            .collect()
    }

    #[test]
    fn reports_comments_but_not_code() {
        let long = "x".repeat(WIDEST);
        let text = format!("let a = \"{long}\";\n// {long}\n/// https://{long}\n/// | {long}\n");
        assert_eq!(lines("c/src/lib.rs", &text), [2]);
        let fits = format!("// {}\n", "é".repeat(WIDEST - 3));
        assert!(lines("c/src/lib.rs", &fits).is_empty());
    }

    #[test]
    fn accepts_long_annotations_but_not_long_comments_in_lua() {
        let long = "x".repeat(WIDEST);
        let text = format!("---@param a string {long}\n--- {long}\n");
        assert_eq!(lines("a.lua", &text), [2]);
    }

    #[test]
    fn reports_prose_but_not_tables_and_code_blocks() {
        let long = "x".repeat(WIDEST + 1);
        let text = format!("{long}\n| {long} |\n```\n{long}\n```\n{long}\n");
        assert_eq!(lines("a.md", &text), [1, 6]);
    }
}
