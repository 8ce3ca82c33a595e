//! The components that travel inside the binary: ordinary plugins, built from `plugins/` by `cargo xtask plugins`.

use std::collections::BTreeMap;

struct Shipped {
    name: &'static str,
    component: &'static [u8],
    schema: &'static str,
}

const SHIPPED: [Shipped; 1] = [Shipped {
    name: "synthetic",
    component: include_bytes!("../../plugins/dist/synthetic.wasm"),
    schema: include_str!("../../plugins/synthetic/schema.json"),
}];

/// The bytes of a shipped component.
pub(crate) fn component(name: &str) -> Option<&'static [u8]> {
    SHIPPED
        .iter()
        .find(|shipped| shipped.name == name)
        .map(|shipped| shipped.component)
}

/// The configuration schemas of the shipped components, by name.
pub(crate) fn schemas() -> BTreeMap<String, serde_json::Value> {
    let schema = |shipped: &Shipped| {
        let schema = serde_json::from_str(shipped.schema).unwrap_or(serde_json::Value::Bool(true));
        (shipped.name.to_owned(), schema)
    };
    SHIPPED.iter().map(schema).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_json() {
        for shipped in &SHIPPED {
            assert!(
                serde_json::from_str::<serde_json::Value>(shipped.schema).is_ok(),
                "{}",
                shipped.name
            );
        }
    }
}
