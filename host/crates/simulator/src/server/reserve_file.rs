//! Refusal of connections for which no file descriptor is left.

use std::fs::File;
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::routes::{RouteReply, unreadable};
use super::socket::{drain, write_all};

/// Maximum duration of a refusal, including the wait for the client to close the connection.
const LONGEST: Duration = Duration::from_millis(100);

/// Returns true if the process or the system has no file descriptor left.
pub(super) fn is_out_of_files(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// A file descriptor in reserve. A connection that cannot be accepted would leave its client
/// waiting until its timeout, because the kernel has already opened it.
pub(super) struct ReserveFile(Option<File>);

impl ReserveFile {
    pub(super) fn open() -> Self {
        ReserveFile(File::open("/dev/null").ok())
    }

    /// Accepts a connection with the reserve, and answers with the reason.
    pub(super) async fn refuse_one(&mut self, listener: &TcpListener) {
        self.0 = None;
        // If another thread takes the descriptor, the next attempt may get it.
        let _ = timeout(LONGEST, refuse(listener)).await;
        *self = ReserveFile::open();
    }
}

async fn refuse(listener: &TcpListener) -> io::Result<()> {
    let (stream, _) = listener.accept().await?;
    let reason = "the simulator has no file descriptor left (EMFILE); raise the limit with `ulimit -n`";
    if let RouteReply::Bytes(bytes, _) = unreadable(503, reason) {
        write_all(&stream, &bytes).await?;
    }
    // Closing with unread data would reset the connection, and the answer could be lost.
    shutdown(&stream, Shutdown::Write)?;
    drain(&stream).await;
    Ok(())
}
