//! `sdk/js/veeksha/contract.ts`: the types of the contract for TypeScript, and the same types as
//! values, by which the SDK converts and checks.

use std::fmt::Write;

use heck::{ToLowerCamelCase, ToUpperCamelCase};
use wit_parser::{PackageId, Resolve, Type, TypeDef, TypeDefKind};

const HEAD: &str = "\
// Generated from `wit/0.2.0` by `cargo xtask codegen`; do not edit.

/** A type of the contract: a primitive, `#Name` of another type, or a composition. */
export type Type =
  | string
  | { readonly list: Type }
  | { readonly option: Type }
  | { readonly tuple: readonly Type[] }
  | { readonly record: Readonly<Record<string, Type>> }
  | { readonly variant: Readonly<Record<string, Type | null>> }
  | { readonly enum: readonly string[] };
";

/// Returns the module.
pub(crate) fn render(resolve: &Resolve, package: PackageId) -> String {
    let mut types = String::from(HEAD);
    let mut values =
        String::from("\n/** The named types. */\nexport const TYPES: Readonly<Record<string, Type>> = {\n");
    for interface in resolve.packages[package].interfaces.values() {
        for id in resolve.interfaces[*interface].types.values() {
            let definition = &resolve.types[*id];
            let (Some(shape), Some(value)) = (shape(resolve, definition), value(resolve, definition)) else {
                continue;
            };
            let name = name(definition);
            let docs = comment(definition.docs.contents.as_deref(), "");
            let _ = write!(types, "\n{docs}{}", shape.replace("NAME", &name));
            let _ = writeln!(values, "  {name}: {value},");
        }
    }
    values.push_str("};\n");
    types + &values
}

fn name(definition: &TypeDef) -> String {
    definition
        .name
        .as_deref()
        .unwrap_or_default()
        .to_upper_camel_case()
}

fn comment(docs: Option<&str>, indent: &str) -> String {
    let Some(docs) = docs else {
        return String::new();
    };
    let lines: Vec<&str> = docs.trim().lines().collect();
    if let [line] = lines.as_slice() {
        return format!("{indent}/** {line} */\n");
    }
    let body: String = lines
        .iter()
        .map(|line| format!("{indent} * {line}\n").replace(" * \n", " *\n"))
        .collect();
    format!("{indent}/**\n{body}{indent} */\n")
}

/// Returns the declaration of a type; none for aliases and resources.
fn shape(resolve: &Resolve, definition: &TypeDef) -> Option<String> {
    let mut text = String::new();
    match &definition.kind {
        TypeDefKind::Record(record) => {
            text.push_str("export interface NAME {\n");
            for field in &record.fields {
                text.push_str(&comment(field.docs.contents.as_deref(), "  "));
                let _ = writeln!(
                    text,
                    "  {}: {};",
                    field.name.to_lower_camel_case(),
                    typescript(resolve, &field.ty)
                );
            }
            text.push_str("}\n");
        }
        TypeDefKind::Variant(variant) => {
            text.push_str("export type NAME =");
            for case in &variant.cases {
                let content = case
                    .ty
                    .map_or(String::new(), |ty| format!("; val: {}", typescript(resolve, &ty)));
                let _ = write!(text, "\n  | {{ tag: \"{}\"{content} }}", case.name);
            }
            text.push_str(";\n");
        }
        TypeDefKind::Enum(choice) => {
            let names: Vec<String> = choice
                .cases
                .iter()
                .map(|case| format!("\"{}\"", case.name))
                .collect();
            let _ = writeln!(text, "export type NAME = {};", names.join(" | "));
        }
        _ => return None,
    }
    Some(text)
}

fn typescript(resolve: &Resolve, ty: &Type) -> String {
    match ty {
        Type::Bool => "boolean".to_owned(),
        Type::String => "string".to_owned(),
        Type::Id(id) => {
            let definition = &resolve.types[*id];
            match &definition.kind {
                TypeDefKind::List(item) => {
                    let item = typescript(resolve, item);
                    if item.contains(' ') {
                        format!("({item})[]")
                    } else {
                        format!("{item}[]")
                    }
                }
                TypeDefKind::Option(inner) => format!("{} | null", typescript(resolve, inner)),
                TypeDefKind::Tuple(tuple) => {
                    let items: Vec<String> = tuple.types.iter().map(|ty| typescript(resolve, ty)).collect();
                    format!("[{}]", items.join(", "))
                }
                TypeDefKind::Type(alias) => typescript(resolve, alias),
                _ => name(definition),
            }
        }
        _ => "number".to_owned(),
    }
}

/// Returns a type as a value; none for aliases and resources.
fn value(resolve: &Resolve, definition: &TypeDef) -> Option<String> {
    let member = |key: &str, value: String| {
        if key.contains('-') {
            format!("\"{key}\": {value}")
        } else {
            format!("{key}: {value}")
        }
    };
    match &definition.kind {
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter();
            let fields: Vec<String> = fields
                .map(|field| member(&field.name.to_lower_camel_case(), reference(resolve, &field.ty)))
                .collect();
            Some(format!("{{ record: {{ {} }} }}", fields.join(", ")))
        }
        TypeDefKind::Variant(variant) => {
            let cases: Vec<String> = variant
                .cases
                .iter()
                .map(|case| {
                    let content = case.ty.map(|ty| reference(resolve, &ty));
                    member(&case.name, content.unwrap_or_else(|| "null".to_owned()))
                })
                .collect();
            Some(format!("{{ variant: {{ {} }} }}", cases.join(", ")))
        }
        TypeDefKind::Enum(choice) => {
            let names: Vec<String> = choice
                .cases
                .iter()
                .map(|case| format!("\"{}\"", case.name))
                .collect();
            Some(format!("{{ enum: [{}] }}", names.join(", ")))
        }
        _ => None,
    }
}

fn reference(resolve: &Resolve, ty: &Type) -> String {
    let primitive = match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::F64 => "f64",
        Type::String => "string",
        Type::Id(id) => return named(resolve, &resolve.types[*id]),
        other => unreachable!("the contract has no values of the type {other:?}"),
    };
    format!("\"{primitive}\"")
}

fn named(resolve: &Resolve, definition: &TypeDef) -> String {
    match &definition.kind {
        TypeDefKind::List(item) => format!("{{ list: {} }}", reference(resolve, item)),
        TypeDefKind::Option(inner) => format!("{{ option: {} }}", reference(resolve, inner)),
        TypeDefKind::Tuple(tuple) => {
            let items: Vec<String> = tuple.types.iter().map(|ty| reference(resolve, ty)).collect();
            format!("{{ tuple: [{}] }}", items.join(", "))
        }
        TypeDefKind::Type(alias) => reference(resolve, alias),
        _ => format!("\"#{}\"", name(definition)),
    }
}
