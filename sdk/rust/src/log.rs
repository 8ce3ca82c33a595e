//! Lines for the user's log. In a native test they go to standard error.

use std::fmt;

pub use crate::bindings::capabilities::veeksha::plugin::log::Level;

/// Writes one line. [`debug!`](crate::debug), [`info!`](crate::info), [`warn!`](crate::warn) and
/// [`error!`](crate::error) take a format string.
pub fn write(level: Level, line: fmt::Arguments<'_>) {
    #[cfg(target_family = "wasm")]
    match line.as_str() {
        Some(line) => crate::bindings::capabilities::veeksha::plugin::log::write(level, line),
        None => crate::bindings::capabilities::veeksha::plugin::log::write(level, &line.to_string()),
    }
    #[cfg(not(target_family = "wasm"))]
    eprintln!("{level:?}: {line}");
}

/// Sends the text and the place of every panic to the log, once per instance: the trap that follows
/// carries neither.
pub(crate) fn report_panics() {
    #[cfg(target_family = "wasm")]
    {
        static INSTALLED: std::sync::Once = std::sync::Once::new();
        INSTALLED.call_once(|| {
            std::panic::set_hook(Box::new(|panic| write(Level::Error, format_args!("{panic}"))));
        });
    }
}

/// Writes a line of level `debug`.
#[macro_export]
macro_rules! debug {
    ($($line:tt)+) => { $crate::log::write($crate::log::Level::Debug, ::core::format_args!($($line)+)) };
}

/// Writes a line of level `info`.
#[macro_export]
macro_rules! info {
    ($($line:tt)+) => { $crate::log::write($crate::log::Level::Info, ::core::format_args!($($line)+)) };
}

/// Writes a line of level `warn`.
#[macro_export]
macro_rules! warn {
    ($($line:tt)+) => { $crate::log::write($crate::log::Level::Warn, ::core::format_args!($($line)+)) };
}

/// Writes a line of level `error`.
#[macro_export]
macro_rules! error {
    ($($line:tt)+) => { $crate::log::write($crate::log::Level::Error, ::core::format_args!($($line)+)) };
}
