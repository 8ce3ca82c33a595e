//! Components in the binary: ordinary plugins, built from `plugins/` by `cargo xtask plugins`.

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShippedKind {
    Generator,
    Flavor,
}

struct Component {
    name: &'static str,
    kind: ShippedKind,
    bytes: &'static [u8],
    schema: &'static str,
}

macro_rules! component {
    ($kind:ident, $name:literal) => {
        Component {
            name: $name,
            kind: ShippedKind::$kind,
            bytes: include_bytes!(concat!("../../../../../plugins/dist/", $name, ".wasm")),
            schema: include_str!(concat!("../../../../../plugins/", $name, "/schema.json")),
        }
    };
}

const SHIPPED: [Component; 17] = [
    component!(Generator, "synthetic"),
    component!(Flavor, "azure"),
    component!(Flavor, "bailian"),
    component!(Flavor, "burstgpt"),
    component!(Flavor, "inputs_json"),
    component!(Flavor, "mooncake"),
    component!(Flavor, "multi_turn"),
    component!(Flavor, "rag"),
    component!(Flavor, "random_pool"),
    component!(Flavor, "request_log"),
    component!(Flavor, "shared_prefix"),
    component!(Flavor, "sharegpt"),
    component!(Flavor, "single_turn"),
    component!(Flavor, "timed_synthetic_session"),
    component!(Flavor, "untimed_content_multi_turn"),
    component!(Flavor, "weka"),
    component!(Flavor, "wildchat"),
];

fn bytes(kind: ShippedKind, name: &str) -> Option<&'static [u8]> {
    SHIPPED
        .iter()
        .find(|shipped| shipped.kind == kind && shipped.name == name)
        .map(|shipped| shipped.bytes)
}

/// Returns the component of a shipped session generator.
pub(crate) fn generator(name: &str) -> Option<&'static [u8]> {
    bytes(ShippedKind::Generator, name)
}

/// Returns the component of a shipped trace flavor.
pub fn flavor(name: &str) -> Option<&'static [u8]> {
    bytes(ShippedKind::Flavor, name)
}

/// Returns the names of the shipped trace flavors.
pub fn flavors() -> impl Iterator<Item = &'static str> {
    SHIPPED
        .iter()
        .filter(|shipped| shipped.kind == ShippedKind::Flavor)
        .map(|shipped| shipped.name)
}

/// Returns the configuration schemas of the shipped components, by kind and name.
pub fn schemas() -> veeksha_scenario::Shipped {
    let mut schemas = veeksha_scenario::Shipped::default();
    for shipped in &SHIPPED {
        let schema = serde_json::from_str(shipped.schema).unwrap_or(serde_json::Value::Bool(true));
        let of_kind = match shipped.kind {
            ShippedKind::Generator => &mut schemas.generators,
            ShippedKind::Flavor => &mut schemas.flavors,
        };
        of_kind.insert(shipped.name.to_owned(), schema);
    }
    schemas
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
