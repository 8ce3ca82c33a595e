//! Inserts a filter around every value that a template assigns to a name, so that values cannot
//! grow from name to name.
//!
//! `{% set x = e %}` becomes `{% set x = (e)|GUARD %}`; after `for`, `with`, `macro` and `call`
//! every bound name is assigned to itself. Long text outside tags is counted where it is written,
//! because captured text does not pass through the writer. Spaces and lines are preserved.

/// The filter's name.
pub(super) const GUARD: &str = "bounded_by_the_host";

/// The function that counts written text.
pub(super) const COUNT: &str = "counted_by_the_host";
/// Length of text that need not be counted: the steps that write it are counted.
const UNCOUNTED: usize = 32;

/// Returns the template with its guards.
pub(super) fn guarded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, tag) = rest.split_at(start);
        let length = match tag.as_bytes().get(1) {
            Some(b'#') => tag.find("#}").map(|end| end + 2),
            Some(b'{') => code_end(tag, "}}"),
            Some(b'%') => code_end(tag, "%}"),
            _ => Some(1),
        };
        // The parser refuses an unterminated tag.
        let Some(length) = length else { break };
        let (tag, behind) = tag.split_at(length);
        plain(before, &mut out);
        rest = behind;
        if !tag.starts_with("{%") {
            out.push_str(tag);
            continue;
        }
        statement(tag, &mut out);
        if words(tag) == "raw" {
            let end = raw_end(rest).unwrap_or(rest.len());
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    out.push_str(rest);
    out
}

/// Copies text outside tags. Long text is counted after its first character, so that the tags
/// around it trim the same space as before.
fn plain(text: &str, out: &mut String) {
    let counted = text.len() > UNCOUNTED;
    match text.char_indices().find(|(_, char)| !char.is_whitespace()) {
        Some((at, first)) if counted => {
            let (start, rest) = text.split_at(at + first.len_utf8());
            out.push_str(&format!("{start}{{{{ {COUNT}({}) }}}}{rest}", text.len()));
        }
        _ => out.push_str(text),
    }
}

/// Returns the text between the delimiters of a tag.
fn words(tag: &str) -> &str {
    let inner = &tag[2..tag.len() - 2];
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    inner.strip_suffix(['-', '+']).unwrap_or(inner).trim()
}

/// Returns the offset of a raw block's `endraw`.
fn raw_end(text: &str) -> Option<usize> {
    text.match_indices("{%").map(|(at, _)| at).find(|at| {
        let end = text[*at..].find("%}").map(|end| at + end + 2);
        end.is_some_and(|end| words(&text[*at..end]) == "endraw")
    })
}

/// Returns the positions of a code's characters outside string literals, each with its bracket
/// depth.
fn outside_texts(code: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let (mut quote, mut escaped, mut depth) = (None, false, 0usize);
    code.char_indices().filter_map(move |(at, char)| {
        if let Some(open) = quote {
            match char {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                _ if char == open => quote = None,
                _ => {}
            }
            return None;
        }
        match char {
            '"' | '\'' => {
                quote = Some(char);
                return None;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        Some((at, char, depth))
    })
}

/// Returns the offset after the delimiter that ends a tag; delimiters inside string literals and
/// brackets do not count.
fn code_end(tag: &str, sign: &str) -> Option<usize> {
    let code = &tag[2..];
    let mut places = outside_texts(code);
    let found = places.find(|(at, _, depth)| code[*at..].starts_with(sign) && (*depth == 0 || sign == "%}"));
    found.map(|(at, ..)| at + 2 + sign.len())
}

fn statement(tag: &str, out: &mut String) {
    let words = words(tag);
    let (keyword, rest) = match words.find(|char: char| !char.is_ascii_alphabetic()) {
        Some(end) => words.split_at(end),
        None => (words, ""),
    };
    let close = match tag.as_bytes()[tag.len() - 3] {
        b'-' => "-%}",
        b'+' => "+%}",
        _ => "%}",
    };
    if keyword == "set" {
        let assigned = outside_texts(rest).find(|(_, char, depth)| *char == '=' && *depth == 0);
        if let Some((at, ..)) = assigned {
            let (target, expression) = (&rest[..=at], &rest[at + 1..]);
            let sign = match tag.as_bytes()[2] {
                b'-' => "-",
                b'+' => "+",
                _ => "",
            };
            // Lines before and after the text are kept, so that errors name the right ones.
            let inner = &tag[2..];
            let lead = &inner[..inner.find("set").unwrap_or(0)].trim_start_matches(['-', '+']);
            let tail = &tag[tag.rfind(words).unwrap_or(0) + words.len()..];
            let tail = &tail[..tail.len() - close.len()];
            out.push_str(&format!(
                "{{%{sign}{lead}set{target} ({expression})|{GUARD}{tail}{close}"
            ));
            return;
        }
    }
    out.push_str(tag);
    let bound = match keyword {
        "for" => {
            let spaced = |text: &str| text.starts_with(char::is_whitespace);
            let mut places = rest.match_indices("in").map(|(at, _)| at);
            let place =
                places.find(|at| rest[..*at].ends_with(char::is_whitespace) && spaced(&rest[at + 2..]));
            place.map(|at| &rest[..at])
        }
        "with" => Some(rest),
        "macro" | "call" => rest.find('(').map(|open| {
            let inner = &rest[open..];
            let end = outside_texts(inner).find(|(_, char, depth)| *char == ')' && *depth == 0);
            &inner[1..end.map_or(inner.len(), |(at, ..)| at)]
        }),
        _ => None,
    };
    // The names before `in` may be nested, and have no values.
    let nested = if keyword == "for" { usize::MAX } else { 0 };
    for name in bound.map(|bound| names(bound, nested)).unwrap_or_default() {
        out.push_str(&format!("{{% set {name} = {name}|{GUARD}{close}"));
    }
}

/// Returns the names bound by a list of bindings: `a, b`, `(a, b)`, `a=1, b=f(2, 3)`.
fn names(bindings: &str, depth: usize) -> Vec<&str> {
    let mut starts = vec![0];
    starts.extend(
        outside_texts(bindings)
            .filter(|(_, char, inside)| *char == ',' && *inside <= depth)
            .map(|(at, ..)| at + 1),
    );
    let name = |start: &usize| {
        let text = bindings[*start..].trim_start_matches(|char: char| char.is_whitespace() || char == '(');
        let end = text.find(|char: char| !char.is_alphanumeric() && char != '_');
        &text[..end.unwrap_or(text.len())]
    };
    starts.iter().map(name).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_every_assigned_name() {
        let same = "{# {% set a = 1 %} #}{{ '{% set a = 1 %}' }}{% raw %}{% set a = 1 %}{% endraw %}{ {% if a == 1 -%} x {%- endif %}";
        assert_eq!(guarded(same), same);
        for (text, expected) in [
            ("{% set a = b ~ '%}' %}x", "{% set a = ( b ~ '%}')|G %}x"),
            ("{%- set ns.a=b == c -%}", "{%- set ns.a= (b == c)|G -%}"),
            ("{% set a %}x{% endset %}", "{% set a %}x{% endset %}"),
            (
                "{% set a | f(x='y') %}{% endset %}",
                "{% set a | f(x='y') %}{% endset %}",
            ),
            ("{%-\nset a = [\n1,\n2]\n+%}", "{%-\nset a = ( [\n1,\n2])|G\n+%}"),
            (
                "{% for a, (b, c) in d -%}",
                "{% for a, (b, c) in d -%}{% set a = a|G-%}{% set b = b|G-%}{% set c = c|G-%}",
            ),
            (
                "{% for inner\nin c %}",
                "{% for inner\nin c %}{% set inner = inner|G%}",
            ),
            (
                "{% with a = f(1, 2), b = 'x,y' %}",
                "{% with a = f(1, 2), b = 'x,y' %}{% set a = a|G%}{% set b = b|G%}",
            ),
            (
                "{% macro m(a, b=[1, 2]) %}",
                "{% macro m(a, b=[1, 2]) %}{% set a = a|G%}{% set b = b|G%}",
            ),
            ("{% call(a) m(1) %}", "{% call(a) m(1) %}{% set a = a|G%}"),
            ("{% macro m() %}", "{% macro m() %}"),
            ("{% open", "{% open"),
            (
                " \n one and thirty letters, and some more {{ a }}x",
                " \n o{{ N(41) }}ne and thirty letters, and some more {{ a }}x",
            ),
        ] {
            assert_eq!(
                guarded(text).replace(GUARD, "G").replace(COUNT, "N"),
                expected,
                "{text}"
            );
        }
    }
}
