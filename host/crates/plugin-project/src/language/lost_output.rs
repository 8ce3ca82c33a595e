//! Warnings of Rust code that writes to standard output, which a component does not have.

use std::path::Path;

/// The macros whose output is lost.
const MACROS: [&str; 5] = ["println!", "print!", "eprintln!", "eprint!", "dbg!"];
/// The maximum number of warnings of a build.
const MOST: usize = 10;
/// The beginning of the tests of a file, which run natively.
const TESTS: &str = "#[cfg(test)]";

/// Reports each line of a folder's sources that writes to standard output.
pub(super) fn warn(sources: &Path, report: &dyn Fn(&str)) {
    let mut warnings = Vec::new();
    search(sources, "src", &mut warnings);
    warnings.sort();
    for (file, line, name) in warnings.iter().take(MOST) {
        report(&format!(
            "warning: {file}:{line}: the output of `{name}` is lost in a component: use `veeksha_plugin::info!`"
        ));
    }
}

fn search(folder: &Path, shown: &str, warnings: &mut Vec<(String, usize, &'static str)>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let shown = format!("{shown}/{}", entry.file_name().to_string_lossy());
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            search(&entry.path(), &shown, warnings);
        } else if shown.ends_with(".rs")
            && let Ok(source) = std::fs::read_to_string(entry.path())
        {
            let found = lost(&source);
            warnings.extend(found.map(|(line, name)| (shown.clone(), line, name)));
        }
    }
}

/// The lines, from 1, that use one of the macros.
fn lost(source: &str) -> impl Iterator<Item = (usize, &'static str)> {
    let code = source.lines().take_while(|line| line.trim() != TESTS);
    code.enumerate().filter_map(|(position, line)| {
        let code = line.split("//").next().unwrap_or_default();
        MACROS.iter().find_map(|name| {
            let at = code.find(name)?;
            let before = code[..at].chars().next_back();
            let is_whole = before.is_none_or(|before| !(before.is_alphanumeric() || before == '_'));
            is_whole.then_some((position + 1, *name))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_macros_in_code_only() {
        let source = "println!(\"a\");\n// println!\nlet x = dbg!(1);\nmy_println!(1);\nstd::eprintln!();\n\
                      #[cfg(test)]\nmod tests { println!(); }\n";
        let found: Vec<_> = lost(source).collect();
        assert_eq!(found, [(1, "println!"), (3, "dbg!"), (5, "eprintln!")]);
    }

    #[test]
    fn reports_each_file_of_the_sources() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("deep")).unwrap();
        std::fs::write(
            folder.path().join("lib.rs"),
            "fn a() {}\nfn b() { print!(\"x\") }\n",
        )
        .unwrap();
        std::fs::write(folder.path().join("deep/more.rs"), "dbg!(3);").unwrap();
        let lines = std::cell::RefCell::new(Vec::new());
        warn(folder.path(), &|line| lines.borrow_mut().push(line.to_owned()));
        let lines = lines.into_inner();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].starts_with("warning: src/deep/more.rs:1: the output of `dbg!`"),
            "{lines:?}"
        );
        assert!(
            lines[1].starts_with("warning: src/lib.rs:2: the output of `print!`"),
            "{lines:?}"
        );
    }
}
