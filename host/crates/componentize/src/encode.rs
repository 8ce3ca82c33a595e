//! A component from the output of a toolchain.

use veeksha_manifest::section;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::error::ComponentizeError;
use crate::outline::ComponentOutline;
use crate::sections::{WasmForm, damaged, map_modules, sections, wasm_form, without_debug_info};
use crate::slim::slim;

/// The place of the debug information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DebugInfo {
    /// In the component.
    #[default]
    Included,
    /// In a separate file.
    Split,
    /// Nowhere.
    Removed,
}

/// The parts of a component that its code does not determine.
#[derive(Clone, Copy, Debug, Default)]
pub struct ComponentOptions<'a> {
    /// The text of the manifest that the component carries.
    pub manifest: Option<&'a str>,
    /// The place of the debug information.
    pub debug_info: DebugInfo,
}

/// A component and its debug information.
#[derive(Debug)]
pub struct BuiltComponent {
    /// The component.
    pub component: Vec<u8>,
    /// The same component with debug information, if it was split and there is any.
    pub debug: Option<Vec<u8>>,
}

/// The prefix of the custom sections in which bindings state the world of a module.
const WORLD_SECTION: &str = "component-type";

/// Makes a component of a core module that states its world, or takes a component.
///
/// # Errors
/// If the bytes are not WebAssembly, are damaged, or are a module that does not fit its world.
pub fn componentize(
    wasm: &[u8],
    options: &ComponentOptions<'_>,
) -> Result<BuiltComponent, ComponentizeError> {
    let mut whole = match wasm_form(wasm)? {
        WasmForm::CoreModule => encode(&slim(wasm)?)?,
        WasmForm::Component => map_modules(wasm, &slim, 0)?,
    };
    if let Some(manifest) = options.manifest {
        whole = section::write(&whole, manifest)?;
    }
    if options.debug_info == DebugInfo::Included {
        return Ok(BuiltComponent {
            component: whole,
            debug: None,
        });
    }
    let component = without_debug_info(&whole)?;
    let is_split = options.debug_info == DebugInfo::Split && ComponentOutline::read(&whole)?.has_debug_info;
    Ok(BuiltComponent {
        component,
        debug: is_split.then_some(whole),
    })
}

fn encode(module: &[u8]) -> Result<Vec<u8>, ComponentizeError> {
    let states_world = sections(module)?.iter().any(|section| {
        section
            .custom_name
            .is_some_and(|name| name.starts_with(WORLD_SECTION))
    });
    if !states_world {
        return Err(ComponentizeError::NoWorld);
    }
    let mut encoder = ComponentEncoder::default().module(module).map_err(unfit)?;
    if imports_preview_1(module)? {
        encoder = encoder
            .adapter(
                WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME,
                WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            )
            .map_err(unfit)?;
    }
    encoder.validate(true).encode().map_err(unfit)
}

fn imports_preview_1(module: &[u8]) -> Result<bool, ComponentizeError> {
    for payload in Parser::new(0).parse_all(module) {
        let Payload::ImportSection(imports) = payload.map_err(|error| damaged(&error))? else {
            continue;
        };
        for import in imports.into_imports() {
            if import.map_err(|error| damaged(&error))?.module == WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The causes are the library's, from the outermost to the innermost.
fn unfit(error: impl std::fmt::Debug + std::fmt::Display) -> ComponentizeError {
    ComponentizeError::Unfit(format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use wit_component::StringEncoding;
    use wit_parser::Resolve;

    use super::*;

    /// A core module with this text that states a world which exports `run`.
    fn module(text: &str) -> Vec<u8> {
        let mut module = wat::parse_str(text).unwrap();
        let mut resolve = Resolve::default();
        let wit = "package test:test; world only { export run: func(); }";
        let package = resolve.push_str("test.wit", wit).unwrap();
        let world = resolve.select_world(&[package], None).unwrap();
        wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        module
    }

    /// A shipped component, which has line tables.
    fn shipped() -> Vec<u8> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../tests/guests/dist/agent.wasm"
        );
        std::fs::read(path).unwrap()
    }

    fn has_debug_info(component: &[u8]) -> bool {
        ComponentOutline::read(component).unwrap().has_debug_info
    }

    fn imports(component: &[u8]) -> Vec<String> {
        ComponentOutline::read(component).unwrap().imports
    }

    #[test]
    fn a_module_that_exports_its_world_becomes_a_component() {
        let module = module("(module (func (export \"run\")))");
        let built = componentize(&module, &ComponentOptions::default()).unwrap();
        assert_eq!(wasm_form(&built.component).unwrap(), WasmForm::Component);
        assert_eq!(imports(&built.component), Vec::<String>::new());
        assert!(built.debug.is_none());
    }

    #[test]
    fn imports_of_preview_1_become_imports_of_wasi_0_2() {
        let module = module(
            "(module
               (import \"wasi_snapshot_preview1\" \"random_get\" (func $random (param i32 i32) (result i32)))
               (memory (export \"memory\") 1)
               (func (export \"run\") (drop (call $random (i32.const 0) (i32.const 8)))))",
        );
        let built = componentize(&module, &ComponentOptions::default()).unwrap();
        let imports = imports(&built.component);
        assert!(
            imports
                .iter()
                .any(|name| name.starts_with("wasi:random/random@0.2")),
            "{imports:?}"
        );
    }

    #[test]
    fn modules_that_cannot_be_components_are_refused_with_the_reason() {
        let refused = |bytes: &[u8]| componentize(bytes, &ComponentOptions::default()).unwrap_err();
        let plain = wat::parse_str("(module (func (export \"run\")))").unwrap();
        assert!(matches!(refused(&plain), ComponentizeError::NoWorld));
        let unfit = refused(&module("(module)")).to_string();
        assert!(
            unfit.contains("does not fit its world") && unfit.contains("`run`"),
            "{unfit}"
        );
        let foreign = module("(module (import \"env\" \"x\" (func)) (func (export \"run\")))");
        let foreign = refused(&foreign).to_string();
        assert!(foreign.contains("env"), "{foreign}");
        assert!(matches!(refused(b"hello"), ComponentizeError::NotWasm));
        assert!(matches!(refused(b" (module)"), ComponentizeError::TextForm));
        let cut = &plain[..plain.len() - 3];
        assert!(matches!(refused(cut), ComponentizeError::Damaged(_)));
    }

    #[test]
    fn a_component_carries_the_manifest_and_stays_the_same_otherwise() {
        let shipped = shipped();
        let built = componentize(&shipped, &ComponentOptions::default()).unwrap();
        assert_eq!(built.component, shipped, "it was already slim");
        let options = ComponentOptions {
            manifest: Some("[plugin]\n"),
            ..ComponentOptions::default()
        };
        let carrying = componentize(&shipped, &options).unwrap().component;
        assert_eq!(section::read(&carrying), Ok(Some("[plugin]\n")));
        assert!(carrying.starts_with(&shipped));
    }

    #[test]
    fn the_split_file_is_the_component_with_debug_information() {
        let shipped = shipped();
        assert!(has_debug_info(&shipped));
        let with = |debug_info| {
            let options = ComponentOptions {
                manifest: Some("x"),
                debug_info,
            };
            componentize(&shipped, &options).unwrap()
        };
        let split = with(DebugInfo::Split);
        let debug = split.debug.unwrap();
        assert!(!has_debug_info(&split.component));
        assert_eq!(debug, with(DebugInfo::Included).component);
        assert_eq!(without_debug_info(&debug).unwrap(), split.component);
        let removed = with(DebugInfo::Removed);
        assert!(removed.debug.is_none() && removed.component == split.component);
        assert!(split.component.len() < debug.len());
        // Nothing to split.
        let options = ComponentOptions {
            debug_info: DebugInfo::Split,
            ..ComponentOptions::default()
        };
        assert!(
            componentize(&removed.component, &options)
                .unwrap()
                .debug
                .is_none()
        );
    }
}
