//! The page.

use std::fmt::Write as _;

use wit_parser::{
    Docs, Function, FunctionKind, Interface, InterfaceId, PackageId, Resolve, Type, TypeDef, TypeDefKind,
    WorldItem, WorldKey,
};

use crate::types::{anchor, is_used, linked, signature};

const INTRODUCTION: &str =
    "<!-- Generated from wit/0.2.0 by `cargo xtask codegen`; edit the comments there. -->

# The contract, item by item

All interfaces of `veeksha:plugin@0.2.0`, with their types and functions. [Plugins](plugins.md)
explains the kinds, and [`wit/README.md`](../wit/README.md) the rules of compatibility. Names here
are those of the contract; each SDK has them in the form of its language.
";

/// The interfaces of one part of the page.
struct Part {
    title: &'static str,
    about: &'static str,
    interfaces: Vec<InterfaceId>,
}

/// Returns the page.
pub(crate) fn render(resolve: &Resolve, package: PackageId) -> String {
    let parts = parts(resolve, package);
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| part | interfaces |\n|---|---|\n");
    for part in &parts {
        let links: Vec<String> = part
            .interfaces
            .iter()
            .map(|id| name(&resolve.interfaces[*id]))
            .map(|name| format!("[`{name}`](#{name})"))
            .collect();
        let _ = writeln!(page, "| {} | {} |", part.title, links.join(", "));
    }
    for part in &parts {
        let _ = write!(page, "\n## {}\n\n{}\n", part.title, part.about);
        for id in &part.interfaces {
            interface(&mut page, resolve, &resolve.interfaces[*id]);
        }
    }
    page
}

fn parts(resolve: &Resolve, package: PackageId) -> [Part; 3] {
    let worlds = &resolve.packages[package].worlds;
    let interfaces = |items: Vec<&WorldKey>| -> Vec<InterfaceId> {
        items
            .into_iter()
            .filter_map(|key| match key {
                WorldKey::Interface(id) => Some(*id),
                WorldKey::Name(_) => None,
            })
            .collect()
    };
    let everything = &resolve.worlds[worlds["everything"]];
    let kinds = interfaces(everything.exports.keys().collect());
    let has_functions = |(_, item): &(&WorldKey, &WorldItem)| matches!(item, WorldItem::Interface { id, .. } if !resolve.interfaces[*id].functions.is_empty());
    let imports = everything.imports.iter().filter(has_functions);
    let capabilities = interfaces(imports.map(|(key, _)| key).collect());
    let named: Vec<InterfaceId> = kinds.iter().chain(&capabilities).copied().collect();
    let shared = resolve.packages[package].interfaces.values();
    let shared = shared.copied().filter(|id| !named.contains(id)).collect();
    [
        Part {
            title: "Kinds of plugins",
            about: "A component exports one interface of each kind that it is.",
            interfaces: kinds,
        },
        Part {
            title: "Capabilities of the host",
            about: "A component imports those that it uses.",
            interfaces: capabilities,
        },
        Part {
            title: "Shared types",
            about: "The kinds use these types.",
            interfaces: shared,
        },
    ]
}

fn name(interface: &Interface) -> &str {
    interface.name.as_deref().unwrap_or_default()
}

fn interface(page: &mut String, resolve: &Resolve, interface: &Interface) {
    let _ = write!(page, "\n### `{}`\n", name(interface));
    paragraphs(page, &interface.docs);
    let free = interface.functions.values();
    free.filter(|function| resource(function).is_none())
        .for_each(|function| self::function(page, resolve, function));
    for (of, id) in &interface.types {
        let ty = &resolve.types[*id];
        if is_used(resolve, *id) {
            continue;
        }
        let _ = write!(
            page,
            "\n#### {} `{of}`\n\n<a id=\"{}\"></a>\n",
            ty.kind.as_str(),
            anchor(name(interface), of)
        );
        paragraphs(page, &ty.docs);
        members(page, resolve, ty);
        let own = interface.functions.values();
        own.filter(|function| resource(function) == Some(*id))
            .for_each(|function| self::function(page, resolve, function));
    }
}

/// The resource that a function belongs to.
fn resource(function: &Function) -> Option<wit_parser::TypeId> {
    match function.kind {
        FunctionKind::Method(id) | FunctionKind::Static(id) => Some(id),
        _ => None,
    }
}

fn members(page: &mut String, resolve: &Resolve, ty: &TypeDef) {
    let of = |ty: &Type| linked(resolve, ty);
    match &ty.kind {
        TypeDefKind::Record(record) => {
            page.push_str("\n| field | type | meaning |\n|---|---|---|\n");
            for field in &record.fields {
                let _ = writeln!(
                    page,
                    "| `{}` | {} |{}|",
                    field.name,
                    of(&field.ty),
                    cell(&field.docs)
                );
            }
        }
        TypeDefKind::Variant(variant) => {
            page.push_str("\n| case | value | meaning |\n|---|---|---|\n");
            for case in &variant.cases {
                let value = case
                    .ty
                    .as_ref()
                    .map_or(String::new(), |ty| format!(" {} ", of(ty)));
                let _ = writeln!(page, "| `{}` |{value}|{}|", case.name, cell(&case.docs));
            }
        }
        TypeDefKind::Enum(cases) => {
            page.push_str("\n| case | meaning |\n|---|---|\n");
            for case in &cases.cases {
                let _ = writeln!(page, "| `{}` |{}|", case.name, cell(&case.docs));
            }
        }
        TypeDefKind::Type(alias) => {
            let _ = write!(page, "\nThe same as {}.\n", of(alias));
        }
        TypeDefKind::Resource => {}
        other => unreachable!("the contract defines no {}", other.as_str()),
    }
}

fn function(page: &mut String, resolve: &Resolve, function: &Function) {
    let signature = signature(resolve, function);
    let _ = write!(page, "\n```wit\n{signature};\n```\n");
    paragraphs(page, &function.docs);
}

fn paragraphs(page: &mut String, docs: &Docs) {
    if let Some(text) = &docs.contents {
        let _ = write!(page, "\n{}\n", text.trim_end());
    }
}

/// Comments in one cell of a table.
fn cell(docs: &Docs) -> String {
    let text = docs.contents.as_deref().unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() {
        return " ".to_owned();
    }
    format!(" {} ", words.join(" ").replace('|', "\\|"))
}
