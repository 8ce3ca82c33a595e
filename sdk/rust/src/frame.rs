//! The common part of all kinds of plugins where they meet the contract: describing themselves,
//! reading their configuration, being exported.

use serde::de::DeserializeOwned;

use crate::config;
use crate::log;
use crate::types::Error;

/// The contract's `describe`, from the constants of a kind's trait.
macro_rules! describe {
    ($plugin:ident) => {
        fn describe() -> $crate::Descriptor {
            $crate::log::report_panics();
            $crate::Descriptor {
                name: $plugin::NAME.into(),
                version: $plugin::VERSION.into(),
                summary: $plugin::SUMMARY.into(),
                config_schema: $plugin::config_schema(),
            }
        }
    };
}

pub(crate) use describe;

/// The contract's `open`: the configuration in the plugin's own type.
pub(crate) fn open<C: DeserializeOwned, T>(
    text: &str,
    open: impl FnOnce(C) -> Result<T, Error>,
) -> Result<T, Error> {
    log::report_panics();
    open(config::from_json(text)?)
}

/// Exports a plugin from its component, and checks on every target that it is of its kind: on other
/// targets than WebAssembly nothing is exported, so that a plugin's own tests run natively.
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    ($plugin:ty, $kind:path, $exported:ident, $world:ident) => {
        const _: () = {
            type VeekshaExported = $crate::__private::$exported<$plugin>;
            const fn exported<T: $kind>() {}
            exported::<$plugin>();
            #[cfg(target_family = "wasm")]
    $crate::__private::$world::export!(VeekshaExported with_types_in $crate::__private::$world);
        };
    };
}
