//! Page that is served during a run.

use std::sync::Arc;

use veeksha_page::LivePage;

use crate::cli::args::RunArgs;
use veeksha_app::CommandFailure;
use veeksha_present::terminal;

/// Environment variable with the token; unlike an argument it is not visible in the list of
/// processes.
const TOKEN: &str = "VEEKSHA_LIVE_TOKEN";

/// Starts the server if the command line requests it, and prints its address.
pub(crate) fn start(args: &RunArgs) -> Result<Option<Arc<LivePage>>, CommandFailure> {
    let Some(address) = args.live else {
        return Ok(None);
    };
    let variable = || std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
    let token = args.live_token.clone().or_else(variable);
    let guarded = token.is_some();
    let live = LivePage::start(address, token).map_err(|error| {
        CommandFailure::usage(format!("--live {address}: {error}")).hinted(format!(
            "use --live 127.0.0.1:0 to serve only this machine, or --live-token TOKEN (or {TOKEN}) to protect the page"
        ))
    })?;
    let query = if guarded { "?token=..." } else { "" };
    terminal::err(format!("live report: http://{}/{query}", live.address()));
    Ok(Some(Arc::new(live)))
}
