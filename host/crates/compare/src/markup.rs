//! Text in HTML and SVG.

use veeksha_model::alters_display;

/// Escapes text for elements and quoted attributes, and removes characters that change its
/// direction.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            c if alters_display(c) => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}
