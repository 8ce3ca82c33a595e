//! The interfaces of the contract with their functions, and those of a component.

use std::collections::BTreeMap;

use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{InterfaceId, Resolve, WorldItem};

/// The package of the contract.
const PACKAGE: &str = "veeksha:plugin/";
/// The version of the contract that the host has.
pub(crate) const VERSION: &str = "0.2.0";

macro_rules! contract_file {
    ($name:literal) => {
        include_str!(concat!("../../../../wit/0.2.0/", $name, ".wit"))
    };
}

/// The files of the contract.
const FILES: [&str; 12] = [
    contract_file!("agent-generator"),
    contract_file!("arrival-process"),
    contract_file!("endpoint-codec"),
    contract_file!("host"),
    contract_file!("metric"),
    contract_file!("records"),
    contract_file!("request-check"),
    contract_file!("results"),
    contract_file!("session-generator"),
    contract_file!("slo-check"),
    contract_file!("trace-flavor"),
    contract_file!("types"),
];

/// The functions of interfaces, by the name of the interface: `log`.
pub(crate) type InterfaceFunctions = BTreeMap<String, Vec<String>>;

/// The interfaces of the contract that a component imports and exports.
#[derive(Debug, Default)]
pub(crate) struct UsedInterfaces {
    pub(crate) imports: InterfaceFunctions,
    pub(crate) exports: InterfaceFunctions,
}

/// Returns the interfaces of the contract.
pub(crate) fn contract() -> Result<InterfaceFunctions, String> {
    let mut files = wit_parser::SourceMap::default();
    for (index, text) in FILES.iter().enumerate() {
        files.push_str(&format!("{index}.wit"), *text);
    }
    let group = files.parse().map_err(|(_, error)| error.to_string())?;
    let mut resolve = Resolve::default();
    let package = resolve.push_group(group).map_err(|error| error.to_string())?;
    let interfaces = resolve.packages[package].interfaces.iter();
    Ok(interfaces
        .map(|(name, id)| (name.clone(), functions(&resolve, *id)))
        .collect())
}

/// Returns the interfaces of the contract that a component uses, without compiling it.
pub(crate) fn used_interfaces(component: &[u8]) -> Result<UsedInterfaces, String> {
    let decoded = decode(component).map_err(|error| format!("{error:#}"))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err("it is a WIT package, not a component".to_owned());
    };
    let world = &resolve.worlds[world];
    let used = |items: &mut dyn Iterator<Item = &WorldItem>| -> InterfaceFunctions {
        let interfaces = items.filter_map(|item| match item {
            WorldItem::Interface { id, .. } => Some(*id),
            _ => None,
        });
        let ours = interfaces.filter_map(|id| Some((interface_name(&resolve, id)?, functions(&resolve, id))));
        ours.collect()
    };
    Ok(UsedInterfaces {
        imports: used(&mut world.imports.values()),
        exports: used(&mut world.exports.values()),
    })
}

/// Returns the name of an interface of the contract, without package and version.
fn interface_name(resolve: &Resolve, id: InterfaceId) -> Option<String> {
    let full = resolve.id_of(id)?;
    let name = full.strip_prefix(PACKAGE)?;
    Some(name.split('@').next().unwrap_or(name).to_owned())
}

fn functions(resolve: &Resolve, id: InterfaceId) -> Vec<String> {
    resolve.interfaces[id].functions.keys().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_has_its_interfaces_and_functions() {
        let contract = contract().unwrap();
        assert_eq!(contract["log"], ["write"]);
        assert_eq!(contract["tokens"], ["count", "encode", "vocabulary"]);
        assert!(contract["session-generator"].contains(&"[method]workload.sessions".to_owned()));
    }

    #[test]
    fn a_component_lists_what_it_uses() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../plugins/dist/synthetic.wasm"
        );
        let used = used_interfaces(&std::fs::read(path).unwrap()).unwrap();
        assert!(used.imports["random"].contains(&"words".to_owned()));
        assert!(used.exports["session-generator"].contains(&"describe".to_owned()));
    }
}
