//! The forms in which a plugin can be given.

use std::path::Path;

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileForm {
    /// A WebAssembly component.
    Component,
    /// A core module, which `plugin build` wraps in a component.
    CoreModule,
    /// WebAssembly as text.
    WasmText,
    /// A Lua file.
    Lua,
    /// A bundle: an OCI image layout in one tar file.
    Bundle,
    /// A scenario in YAML or JSON.
    Scenario,
    /// Anything else.
    Unknown,
}

/// The position of the magic of a tar file.
const TAR_MAGIC_AT: usize = 257;

impl FileForm {
    /// Recognizes a file by its first bytes and, where these say nothing, by its name.
    pub fn of(path: &Path, bytes: &[u8]) -> Self {
        let start = bytes.trim_ascii_start();
        let extension = path.extension().and_then(|extension| extension.to_str());
        match bytes {
            [b'\0', b'a', b's', b'm', _, _, layer, _, ..] => match layer {
                0 => FileForm::CoreModule,
                _ => FileForm::Component,
            },
            _ if start.starts_with(b"(component") || start.starts_with(b"(module") => FileForm::WasmText,
            _ if bytes
                .get(TAR_MAGIC_AT..)
                .is_some_and(|rest| rest.starts_with(b"ustar")) =>
            {
                FileForm::Bundle
            }
            _ => match extension {
                Some("lua" | "luau") => FileForm::Lua,
                Some("yml" | "yaml" | "json") => FileForm::Scenario,
                _ => FileForm::Unknown,
            },
        }
    }

    /// Returns the form as a noun phrase for messages.
    pub fn noun(self) -> &'static str {
        match self {
            FileForm::Component => "a component",
            FileForm::CoreModule => "a core module",
            FileForm::WasmText => "WebAssembly as text",
            FileForm::Lua => "a Lua file",
            FileForm::Bundle => "a bundle",
            FileForm::Scenario => "a scenario",
            FileForm::Unknown => "not a plugin",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_before_the_name() {
        let form = |name: &str, bytes: &[u8]| FileForm::of(Path::new(name), bytes);
        assert_eq!(form("a.lua", b"\0asm\x0d\0\x01\0"), FileForm::Component);
        assert_eq!(form("a.wasm", b"\0asm\x01\0\0\0"), FileForm::CoreModule);
        assert_eq!(form("a.wasm", b"\n  (component"), FileForm::WasmText);
        assert_eq!(form("a.lua", b"return {}"), FileForm::Lua);
        assert_eq!(form("a.yml", b""), FileForm::Scenario);
        assert_eq!(form("a.wasm", b"\0asm"), FileForm::Unknown);
        assert_eq!(form("a.wasm", b""), FileForm::Unknown);
        let mut tar = vec![0; 512];
        tar[TAR_MAGIC_AT..TAR_MAGIC_AT + 5].copy_from_slice(b"ustar");
        assert_eq!(form("a.tar", &tar), FileForm::Bundle);
    }
}
