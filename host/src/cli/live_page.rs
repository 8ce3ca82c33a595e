//! The page that is served while a run goes on.

use std::sync::Arc;

use veeksha_page::Live;

use crate::cli::args::RunArgs;
use veeksha_app::Failure;
use veeksha_present::terminal;

/// Where the token may stand, so that it is not seen in the list of processes.
const TOKEN: &str = "VEEKSHA_LIVE_TOKEN";

/// Starts the server, if the user wants one, and says where it is.
pub(crate) fn start(args: &RunArgs) -> Result<Option<Arc<Live>>, Failure> {
    let Some(address) = args.live else {
        return Ok(None);
    };
    let variable = || std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
    let token = args.live_token.clone().or_else(variable);
    let guarded = token.is_some();
    let live = Live::start(address, token).map_err(|error| {
        Failure::usage(format!("--live {address}: {error}")).hinted(format!(
            "--live 127.0.0.1:0 serves this machine only; --live-token TOKEN (or {TOKEN}) lets others see it"
        ))
    })?;
    let query = if guarded { "?token=..." } else { "" };
    terminal::err(format!("the report so far: http://{}/{query}", live.address()));
    Ok(Some(Arc::new(live)))
}
