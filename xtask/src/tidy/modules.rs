//! Cycles between the modules of one crate.
//!
//! A module is a file. It uses another if a path in its code leads there: `use crate::a::X`,
//! `super::X`, `child::f()`. A path to an item that a parent only re-exports leads to the parent,
//! so that importing a sibling through the crate's root is a cycle with the root.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{self, Token};
use super::source::{self, Sources};
use super::violation::{Rule, Violation};

/// A module's path inside its crate.
type Module<'a> = Vec<&'a str>;

/// The uses of one module: the used module, and the first line that uses it.
type Uses<'a> = BTreeMap<Module<'a>, usize>;

/// The modules of a crate.
#[derive(Default)]
struct Crate<'a> {
    /// File and uses of each module.
    modules: BTreeMap<Module<'a>, (&'a str, Uses<'a>)>,
}

/// Returns one violation for each group of modules that use each other in a circle.
pub(super) fn cycles(sources: &Sources) -> Vec<Violation> {
    let mut crates: BTreeMap<&str, Crate> = BTreeMap::new();
    let mut code: Vec<(&str, Module, Vec<Token>)> = Vec::new();
    for file in sources.rust().filter(|file| !file.is_test()) {
        if let Some((folder, module)) = file.module_path() {
            let modules = &mut crates.entry(folder).or_default().modules;
            modules.insert(module.clone(), (&file.path, Uses::new()));
            code.push((folder, module, source::production(&file.tokens())));
        }
    }
    for (folder, module, tokens) in &code {
        if let Some(found) = crates.get_mut(folder) {
            let uses = uses(module, tokens, found);
            if let Some((_, own)) = found.modules.get_mut(module) {
                *own = uses;
            }
        }
    }
    crates
        .values()
        .flat_map(|found| groups(found).into_iter().map(|group| violation(found, &group)))
        .collect()
}

/// The modules that the code of `module` uses.
fn uses<'a>(module: &Module<'a>, code: &[Token<'a>], all: &Crate<'a>) -> Uses<'a> {
    let mut imported: BTreeMap<&str, Module> = BTreeMap::new();
    let mut found = Uses::new();
    let mut inline = 0;
    let mut depth = 0_usize;
    let mut inline_depths: Vec<usize> = Vec::new();
    let mut at = 0;
    while let Some(token) = code.get(at) {
        let next = code.get(at + 1);
        if token.is("{") {
            depth += 1;
        } else if token.is("}") {
            depth = depth.saturating_sub(1);
            if inline_depths.last() == Some(&depth) {
                inline_depths.pop();
                inline -= 1;
            }
        } else if token.is("mod") && code.get(at + 2).is_some_and(|brace| brace.is("{")) {
            inline_depths.push(depth);
            inline += 1;
        } else if token.is("use") {
            let mut paths = Vec::new();
            at = use_tree(code, at + 1, &[], &mut paths);
            for (path, name) in paths {
                if let Some(target) = resolve(module, &path, inline, &imported, all) {
                    if target.len() >= path_modules(&path) && !path.is_empty() {
                        imported.insert(name, target.clone());
                    }
                    found.entry(target).or_insert(token.line);
                }
            }
            continue;
        } else if token.kind == lexer::Kind::Ident && next.is_some_and(|next| next.is("::")) {
            let (path, end) = path(code, at);
            let follows = at
                .checked_sub(1)
                .and_then(|before| code.get(before))
                .is_some_and(|before| before.is("::") || before.is("in") || before.is("."));
            if !follows && let Some(target) = resolve(module, &path, inline, &imported, all) {
                found.entry(target).or_insert(token.line);
            }
            at = end;
            continue;
        }
        at += 1;
    }
    found.remove(module);
    found
}

/// Segments of a path that could be modules: all that are not `crate`, `self` or `super`.
fn path_modules(path: &[&str]) -> usize {
    path.iter()
        .filter(|part| !["crate", "self", "super"].contains(part))
        .count()
}

/// The segments of the path at `start`, and the place after it.
fn path<'a>(code: &[Token<'a>], start: usize) -> (Vec<&'a str>, usize) {
    let mut segments = Vec::new();
    let mut at = start;
    while let Some(token) = code.get(at).filter(|token| token.kind == lexer::Kind::Ident) {
        segments.push(token.text);
        at += 1;
        if !code.get(at).is_some_and(|next| next.is("::")) {
            break;
        }
        at += 1;
    }
    (segments, at)
}

/// Collects the paths of the tree at `start`, each with the name that it binds, and returns the
/// position after it.
fn use_tree<'a>(
    code: &[Token<'a>],
    start: usize,
    prefix: &[&'a str],
    paths: &mut Vec<(Vec<&'a str>, &'a str)>,
) -> usize {
    let mut segments = prefix.to_vec();
    let mut at = start;
    while let Some(token) = code.get(at) {
        if token.is("{") {
            at += 1;
            while let Some(inner) = code.get(at) {
                if inner.is("}") {
                    return at + 1;
                }
                at = if inner.is(",") {
                    at + 1
                } else {
                    use_tree(code, at, &segments, paths)
                };
            }
            return at;
        }
        if token.is("*") {
            paths.push((segments, "*"));
            return at + 1;
        }
        if token.kind == lexer::Kind::Ident {
            segments.push(token.text);
        } else if !token.is("::") {
            // Neither a path nor a tree: a macro's `$name`, or a precise capture `use<'a>`.
            return at + 1;
        }
        at += 1;
        let ends = |token: &&Token| token.is(",") || token.is("}") || token.is(";");
        if code.get(at).is_some_and(|next| next.is("as")) {
            let name = code.get(at + 1).map_or("_", |name| name.text);
            paths.push((segments, name));
            return at + 2;
        }
        if code.get(at).filter(ends).is_some() {
            let name = segments.last().copied().unwrap_or("_");
            paths.push((segments, name));
            return at;
        }
    }
    at
}

/// The deepest module that `path` leads to from inside `module`; `None` for other crates and
/// other items.
fn resolve<'a>(
    module: &Module<'a>,
    path: &[&'a str],
    inline: usize,
    imported: &BTreeMap<&str, Module<'a>>,
    all: &Crate<'a>,
) -> Option<Module<'a>> {
    let (first, mut rest) = path.split_first()?;
    let mut found = match *first {
        "crate" => Vec::new(),
        "self" => module.clone(),
        "super" => {
            let mut found = module.clone();
            let mut ups = 1;
            while let Some((&"super", deeper)) = rest.split_first() {
                ups += 1;
                rest = deeper;
            }
            for _ in inline..ups {
                found.pop();
            }
            found
        }
        name => {
            let mut child = module.clone();
            child.push(name);
            if all.modules.contains_key(&child) {
                child
            } else {
                imported.get(name)?.clone()
            }
        }
    };
    for segment in rest {
        found.push(segment);
        if !all.modules.contains_key(&found) {
            found.pop();
            break;
        }
    }
    all.modules.contains_key(&found).then_some(found)
}

/// The groups of two or more modules of which each reaches each other.
fn groups<'a>(all: &Crate<'a>) -> Vec<Vec<Module<'a>>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = all
        .modules
        .keys()
        .map(|module| (module, reachable(all, module)))
        .collect();
    let reaches = |from: &Module, to: &Module| reach.get(from).is_some_and(|set| set.contains(to));
    let mut seen: BTreeSet<&Module> = BTreeSet::new();
    let mut found = Vec::new();
    for module in all.modules.keys() {
        if seen.contains(module) || !reaches(module, module) {
            continue;
        }
        let group: Vec<&Module> = all
            .modules
            .keys()
            .filter(|other| reaches(module, other) && reaches(other, module))
            .collect();
        seen.extend(&group);
        found.push(group.into_iter().cloned().collect());
    }
    found
}

fn reachable<'c, 'a>(all: &'c Crate<'a>, from: &Module<'a>) -> BTreeSet<&'c Module<'a>> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        if let Some((_, uses)) = all.modules.get(module) {
            for used in uses.keys() {
                if found.insert(used) {
                    open.push(used);
                }
            }
        }
    }
    found
}

/// One violation for a group, at its first file, that names every use inside of it.
fn violation(all: &Crate, group: &[Module]) -> Violation {
    let mut edges = Vec::new();
    let mut first = "";
    for module in group {
        if let Some((path, uses)) = all.modules.get(module) {
            if first.is_empty() {
                first = path;
            }
            for (used, line) in uses.iter().filter(|(used, _)| group.contains(used)) {
                edges.push(format!("{} -> {} (line {line})", name(module), name(used)));
            }
        }
    }
    Violation {
        rule: Rule::Cycle,
        path: first.to_owned(),
        line: 1,
        subject: group.iter().map(name).collect::<Vec<_>>().join(","),
        message: format!("{} modules use each other: {}", group.len(), edges.join(", ")),
    }
}

fn name(module: &Module) -> String {
    if module.is_empty() {
        "lib".to_owned()
    } else {
        module.join("::")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects(files: &[(&str, &str)]) -> Vec<String> {
        cycles(&Sources::of(files))
            .into_iter()
            .map(|violation| violation.subject)
            .collect()
    }

    #[test]
    fn import_through_the_root_is_a_cycle() {
        let root = ("c/src/lib.rs", "mod a; mod b; pub use a::A; pub use b::B;");
        let a = ("c/src/a.rs", "pub struct A;");
        assert_eq!(
            subjects(&[root, a, ("c/src/b.rs", "use crate::A; pub struct B(A);")]),
            ["lib,b"]
        );
        assert!(subjects(&[root, a, ("c/src/b.rs", "use crate::a::A; pub struct B(A);")]).is_empty());
    }

    #[test]
    fn follows_trees_supers_and_paths_in_code() {
        let root = ("c/src/lib.rs", "mod a; mod b; mod d;");
        let a = (
            "c/src/a.rs",
            "use super::{d::{self, D}, std::x}; fn f() { d::g(); }",
        );
        let b = ("c/src/b.rs", "fn f() { crate::a::f(); }");
        let d = ("c/src/d.rs", "mod e { fn f() { super::super::b::f() } }");
        assert_eq!(subjects(&[root, a, b, d]), ["a,b,d"]);
        let d = ("c/src/d.rs", "mod e { fn f() { super::b::f() } }");
        assert!(
            subjects(&[root, a, b, d]).is_empty(),
            "`super` of an inline module is its file"
        );
    }

    #[test]
    fn parent_and_child_that_use_each_other_are_a_cycle() {
        let root = ("c/src/lib.rs", "mod a;");
        let parent = ("c/src/a/mod.rs", "mod e; pub struct A; fn f() { e::g() }");
        assert_eq!(
            subjects(&[root, parent, ("c/src/a/e.rs", "use super::A; pub fn g() {}")]),
            ["a,a::e"]
        );
        assert!(subjects(&[root, parent, ("c/src/a/e.rs", "pub fn g() {}")]).is_empty());
    }

    #[test]
    fn tests_and_visibilities_are_not_uses() {
        let root = ("c/src/lib.rs", "mod a; mod b; use b::B;");
        let a = ("c/src/a.rs", "#[cfg(test)] mod tests { use crate::b::B; }");
        let b = ("c/src/b.rs", "use crate::a::A; pub(in crate::a) struct B;");
        assert!(subjects(&[root, a, b]).is_empty());
    }
}
