//! Plugins that say of each request whether it was good: part of goodput.
//!
//! ```
//! use veeksha_plugin::check::RequestCheck;
//! use veeksha_plugin::{Completion, Error, Plugin};
//!
//! /// Good is what was not cut off.
//! struct Whole;
//!
//! impl Plugin for Whole {
//!     type Config = ();
//!     const NAME: &'static str = "whole";
//!     const VERSION: &'static str = "0.1.0";
//!     const SUMMARY: &'static str = "answers that were not cut off";
//! }
//!
//! impl RequestCheck for Whole {
//!     fn open(_config: ()) -> Result<Self, Error> {
//!         Ok(Whole)
//!     }
//!
//!     fn is_good(&self, request: &Completion<'_>) -> bool {
//!         request.finish_reason != Some("length")
//!     }
//! }
//!
//! veeksha_plugin::export_request_check!(Whole);
//! ```

use std::marker::PhantomData;

use crate::bindings::request_check::exports::veeksha::plugin::request_check as contract;
use crate::completion::{Completion, each};
use crate::frame;
use crate::plugin::Plugin;
use crate::types::Error;

/// Judges requests.
///
/// Its result must depend on (configuration, request) and on nothing else, not on the requests
/// before: the host may use several instances, and may ask twice.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a request check",
    label = "does not implement `RequestCheck`",
    note = "write `impl RequestCheck for {Self} {{ .. }}`; the documentation of `RequestCheck` has a whole one"
)]
pub trait RequestCheck: Plugin {
    /// Opens the check.
    ///
    /// # Errors
    /// A configuration that cannot be; say where with [`Error::config`].
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// Returns true if a request was good. The host asks about requests that were answered; one
    /// that failed or was cancelled is never good, whatever is said here.
    fn is_good(&self, request: &Completion<'_>) -> bool;
}

/// A check as the contract sees it.
pub struct Exported<T>(PhantomData<T>);

/// An open check as the contract sees it.
pub struct Open<T>(T);

impl<T: RequestCheck> contract::Guest for Exported<T> {
    type Checker = Open<T>;

    frame::describe!(T);
}

impl<T: RequestCheck> contract::GuestChecker for Open<T> {
    fn open(config: String) -> Result<contract::Checker, Error> {
        Ok(contract::Checker::new(Open(frame::open(&config, T::open)?)))
    }

    fn judge(&self, batch: contract::Batch) -> Result<Vec<bool>, Error> {
        let mut good = Vec::with_capacity(batch.session.len());
        each(&batch, |_, request| good.push(self.0.is_good(request)));
        Ok(good)
    }
}

/// Makes a type that is a [`RequestCheck`](crate::check::RequestCheck) the request check of this
/// component. One component may also export a metric and an SLO check.
///
/// The crate must be a `cdylib`. On other targets than WebAssembly nothing is exported, so that the
/// plugin's own tests run natively.
#[macro_export]
macro_rules! export_request_check {
    ($check:ty) => {
        $crate::__export!(
            $check,
            $crate::check::RequestCheck,
            ExportedRequestCheck,
            request_check
        );
    };
}
