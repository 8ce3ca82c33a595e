//! The kinds of errors of plugins, each with a code that never changes.
//!
//! This table is the only definition. `docs/plugin-errors.md` has a section for each code, which a
//! test compares with it.

macro_rules! plugin_errors {
    ($($(#[$doc:meta])* $variant:ident $code:literal $title:literal;)*) => {
        /// A kind of error of a plugin.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum PluginErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl PluginErrorCode {
            /// All codes, in order.
            pub const ALL: &'static [PluginErrorCode] = &[$(PluginErrorCode::$variant,)*];

            /// Returns the code: `VP0001`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(PluginErrorCode::$variant => $code,)*
                }
            }

            /// Returns the title of its section in `docs/plugin-errors.md`.
            pub fn title(self) -> &'static str {
                match self {
                    $(PluginErrorCode::$variant => $title,)*
                }
            }
        }
    };
}

plugin_errors! {
    /// The bytes are not a plugin for this host, or a scenario's text does not parse.
    NotLoaded "VP0001" "The plugin cannot be loaded";
    /// The compiler needed more time than it is allowed.
    CompileDeadline "VP0002" "Compilation takes too long";
    /// The plugin returned an error.
    Refused "VP0003" "The plugin returned an error";
    /// A panic, an uncaught exception, or another trap.
    Trap "VP0004" "The plugin stopped on a bug";
    /// The guest's stack is exhausted.
    StackOverflow "VP0005" "The call stack is exhausted";
    /// The guest called `exit`.
    Exit "VP0006" "The plugin ended itself";
    /// A call did not return in time.
    CallDeadline "VP0007" "A call takes too long";
    /// A call used more instructions than it is allowed.
    CallFuel "VP0008" "A call executes too many instructions";
    /// The guest asked for more memory than it is allowed.
    Memory "VP0009" "A plugin needs too much memory";
    /// The guest asked for too many tables, table elements, memories, instances or handles.
    Objects "VP0010" "A plugin has too many tables, instances or handles";
    /// A call passed more bytes to the host than are allowed.
    Output "VP0011" "A call passes too much data to the host";
    /// A function of the host was called with arguments that it does not accept.
    HostCall "VP0012" "A host function refuses its arguments";
    /// A capability was used that was not granted.
    NotGranted "VP0013" "A capability was not granted";
    /// A result breaks a rule of the contract.
    Result "VP0014" "A result cannot be used";
    /// Two instances of the plugin made different sessions.
    Impure "VP0015" "Sessions depend on more than their number";
}

impl std::fmt::Display for PluginErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_numbered_without_gaps() {
        let codes: Vec<String> = PluginErrorCode::ALL.iter().map(ToString::to_string).collect();
        let numbered: Vec<String> = (1..=codes.len()).map(|n| format!("VP{n:04}")).collect();
        assert_eq!(codes, numbered);
        let titles: BTreeSet<&str> = PluginErrorCode::ALL.iter().map(|code| code.title()).collect();
        assert_eq!(titles.len(), codes.len());
    }

    /// Each code has a section with its title, a cause, an example and a remedy, in order.
    #[test]
    fn the_documentation_explains_every_code() {
        let page = include_str!("../../../../docs/plugin-errors.md");
        let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
        let headings: Vec<&str> = sections
            .iter()
            .filter_map(|section| section.lines().next())
            .collect();
        let expected = PluginErrorCode::ALL.iter();
        let expected: Vec<String> = expected.map(|code| format!("{code}: {}", code.title())).collect();
        assert_eq!(headings, expected);
        for section in sections {
            for part in ["\n**Cause.** ", "\n**Example.** ", "\n**Remedy.** "] {
                assert_eq!(section.matches(part).count(), 1, "{part} in {section}");
            }
        }
    }
}
