//! The languages of plugins.

/// The language that a plugin is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Rust, with cargo.
    Rust,
    /// Python, with componentize-py.
    Python,
    /// JavaScript, with componentize-qjs.
    JavaScript,
    /// TypeScript, with esbuild and componentize-qjs.
    TypeScript,
    /// C, with clang or zig.
    C,
    /// Lua, which the host runs without building it.
    Lua,
}

impl Language {
    /// All languages.
    pub const ALL: [Language; 6] = [
        Language::Rust,
        Language::Python,
        Language::JavaScript,
        Language::TypeScript,
        Language::C,
        Language::Lua,
    ];

    /// The name in a manifest and on the command line: `typescript`.
    pub const fn name(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::Python => "python",
            Language::JavaScript => "javascript",
            Language::TypeScript => "typescript",
            Language::C => "c",
            Language::Lua => "lua",
        }
    }

    /// The language with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.name() == name)
    }
}

impl std::fmt::Display for Language {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}
