//! The table of remarks in `docs/comparing.md`.

use std::fs;

use veeksha_compare::REMARK_KINDS;

const BEGIN: &str = "<!-- generated from REMARK_KINDS: UPDATE_DOCS=1 cargo test -p veeksha-compare -->\n";
const END: &str = "<!-- end of the generated table -->\n";

/// `UPDATE_DOCS=1` regenerates the table.
#[test]
fn documentation_has_every_kind_of_remark() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/comparing.md");
    let mut table = String::from("\n| kind | meaning |\n|---|---|\n");
    for kind in REMARK_KINDS {
        table += &format!("| `{}` | {} |\n", kind.name, kind.meaning);
    }
    table.push('\n');
    let text = fs::read_to_string(path).unwrap();
    let begin = text.find(BEGIN).unwrap() + BEGIN.len();
    let end = text.find(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let updated = format!("{}{table}{}", &text[..begin], &text[end..]);
        fs::write(path, updated).unwrap();
        return;
    }
    assert!(
        text[begin..end] == table,
        "docs/comparing.md is out of date: UPDATE_DOCS=1 cargo test -p veeksha-compare"
    );
}

#[test]
fn remark_kinds_have_unique_names() {
    for (place, kind) in REMARK_KINDS.iter().enumerate() {
        assert!(
            REMARK_KINDS[..place].iter().all(|other| other.name != kind.name),
            "{}",
            kind.name
        );
    }
}
