//! Names of types, as links to their definitions on the page.

use wit_parser::{Function, FunctionKind, Handle, Resolve, Type, TypeDef, TypeDefKind, TypeId, TypeOwner};

/// The anchor of a named type: interface and name, because names repeat between interfaces.
pub(crate) fn anchor(interface: &str, name: &str) -> String {
    format!("{interface}.{name}")
}

/// The last definition behind `use` statements.
pub(crate) fn definition(resolve: &Resolve, mut id: TypeId) -> &TypeDef {
    while let TypeDefKind::Type(Type::Id(next)) = resolve.types[id].kind {
        id = next;
    }
    &resolve.types[id]
}

/// True if `use` brought the type into its interface.
pub(crate) fn is_used(resolve: &Resolve, id: TypeId) -> bool {
    let TypeDefKind::Type(Type::Id(target)) = resolve.types[id].kind else {
        return false;
    };
    resolve.types[id].owner != resolve.types[target].owner
}

/// A type in Markdown.
pub(crate) fn linked(resolve: &Resolve, ty: &Type) -> String {
    let Type::Id(id) = ty else {
        return primitive(ty).to_owned();
    };
    let ty = definition(resolve, *id);
    if let (Some(name), TypeOwner::Interface(owner)) = (&ty.name, ty.owner) {
        let interface = resolve.interfaces[owner].name.as_deref().unwrap_or_default();
        return format!("[{name}](#{})", anchor(interface, name));
    }
    structure(resolve, &ty.kind, &linked).replace('<', "&lt;")
}

/// A type as the contract writes it.
pub(crate) fn plain(resolve: &Resolve, ty: &Type) -> String {
    let Type::Id(id) = ty else {
        return primitive(ty).to_owned();
    };
    let ty = &resolve.types[*id];
    match &ty.name {
        Some(name) => name.clone(),
        None => structure(resolve, &ty.kind, &plain),
    }
}

fn structure(resolve: &Resolve, kind: &TypeDefKind, name: &dyn Fn(&Resolve, &Type) -> String) -> String {
    let of = |ty: &Type| name(resolve, ty);
    match kind {
        TypeDefKind::Option(inner) => format!("option<{}>", of(inner)),
        TypeDefKind::List(inner) => format!("list<{}>", of(inner)),
        TypeDefKind::Tuple(tuple) => {
            let members: Vec<String> = tuple.types.iter().map(of).collect();
            format!("tuple<{}>", members.join(", "))
        }
        TypeDefKind::Result(result) => match (&result.ok, &result.err) {
            (Some(ok), Some(err)) => format!("result<{}, {}>", of(ok), of(err)),
            (None, Some(err)) => format!("result<_, {}>", of(err)),
            (Some(ok), None) => format!("result<{}>", of(ok)),
            (None, None) => "result".to_owned(),
        },
        TypeDefKind::Handle(Handle::Own(id)) => of(&Type::Id(*id)),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", of(&Type::Id(*id))),
        TypeDefKind::Type(inner) => of(inner),
        other => unreachable!("the contract has no {other:?} without a name"),
    }
}

fn primitive(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "s8",
        Type::S16 => "s16",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        other => unreachable!("the contract does not use {other:?}"),
    }
}

/// The signature of a function as the contract writes it.
pub(crate) fn signature(resolve: &Resolve, function: &Function) -> String {
    let is_static = matches!(function.kind, FunctionKind::Static(_));
    let is_method = matches!(function.kind, FunctionKind::Method(_));
    let parameters: Vec<String> = function
        .params
        .iter()
        .skip(usize::from(is_method))
        .map(|parameter| format!("{}: {}", parameter.name, plain(resolve, &parameter.ty)))
        .collect();
    let result = match &function.result {
        Some(result) => format!(" -> {}", plain(resolve, result)),
        None => String::new(),
    };
    let word = if is_static { "static func" } else { "func" };
    format!(
        "{}: {word}({}){result}",
        function.item_name(),
        parameters.join(", ")
    )
}
