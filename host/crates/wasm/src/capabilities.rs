//! The capabilities `log`, `random`, `tokens` and `blobs`, as the host implements them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use veeksha_stats::RandomStream;
use wasmtime::component::Resource;
use wasmtime::{Error, bail};

use crate::bindings::{blobs, log, random, records, tokens, types};
use crate::grants::{LogLevel, PluginTokenizer};
use crate::guest_resources::OpenBlob;
use crate::state::HostState;
use crate::text::grouped;

/// Maximum number of words per call of `random.words`.
pub(crate) const MAX_WORDS_PER_CALL: u32 = 65_536;
/// Maximum number of bytes per call of `blob.read`.
const MAX_READ_BYTES: u32 = 4 << 20;

impl types::Host for HostState {}

impl records::Host for HostState {}

impl log::Host for HostState {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            log::Level::Debug => LogLevel::Debug,
            log::Level::Info => LogLevel::Info,
            log::Level::Warn => LogLevel::Warn,
            log::Level::Error => LogLevel::Error,
        };
        self.log(level, &message);
        Ok(())
    }
}

impl random::Host for HostState {
    fn words(&mut self, session: u64, stream: String, first: u32, count: u32) -> wasmtime::Result<Vec<u32>> {
        if count > MAX_WORDS_PER_CALL {
            bail!(
                "random: {} words requested in one call, at most {} are allowed",
                grouped(count.into()),
                grouped(MAX_WORDS_PER_CALL.into())
            );
        }
        let mut words = vec![0; count as usize];
        RandomStream::new(self.seed, session, &stream).fill(first.into(), &mut words);
        Ok(words)
    }
}

impl HostState {
    /// The token ids of a text of a permitted size.
    fn ids(&self, text: &str, function: &str) -> wasmtime::Result<Vec<u32>> {
        if text.len() > self.count_bytes {
            bail!(
                "tokens: a text of {} bytes passed to `{function}`, at most {} are allowed; pass it in parts",
                grouped(text.len() as u64),
                grouped(self.count_bytes as u64)
            );
        }
        let ids = self.tokenizer()?.encode(text);
        ids.map_err(|reason| Error::msg(format!("tokens: `{function}` has no result: {reason}")))
    }

    fn tokenizer(&self) -> wasmtime::Result<&dyn PluginTokenizer> {
        self.tokens
            .as_deref()
            .ok_or_else(|| Error::msg("tokens: not granted (this run does not grant the plugin a tokenizer)"))
    }
}

impl tokens::Host for HostState {
    fn count(&mut self, text: String) -> wasmtime::Result<u32> {
        // A text of at most some MiB has fewer tokens than 2^32.
        Ok(self.ids(&text, "count")?.len() as u32)
    }

    fn encode(&mut self, text: String) -> wasmtime::Result<Vec<u32>> {
        self.ids(&text, "encode")
    }

    fn vocabulary(&mut self) -> wasmtime::Result<u32> {
        Ok(self.tokenizer()?.vocabulary())
    }
}

impl blobs::Host for HostState {}

impl blobs::HostBlob for HostState {
    fn open(&mut self, name: String) -> wasmtime::Result<Result<Resource<OpenBlob>, types::Error>> {
        if self.blobs.is_empty() {
            bail!("blobs: not granted (this run does not grant the plugin any files)");
        }
        let Some(path) = self.blobs.get(&name) else {
            let granted: Vec<&str> = self.blobs.keys().map(String::as_str).collect();
            return Ok(Err(types::Error {
                code: "not-granted".into(),
                message: format!("no file was granted under the name `{name}`"),
                hint: Some(format!("granted names: {}", granted.join(", "))),
                path: None,
            }));
        };
        match open(path) {
            Ok(blob) => Ok(Ok(self.table.push(blob)?)),
            Err(error) => Ok(Err(unreadable(&name, &error))),
        }
    }

    fn size(&mut self, blob: Resource<OpenBlob>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&blob)?.size)
    }

    fn read(
        &mut self,
        blob: Resource<OpenBlob>,
        offset: u64,
        len: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, types::Error>> {
        let blob = self.table.get(&blob)?;
        if len > MAX_READ_BYTES {
            bail!(
                "blobs: {} bytes requested in one read, at most {} are allowed",
                grouped(len.into()),
                grouped(MAX_READ_BYTES.into())
            );
        }
        let left = blob.size.saturating_sub(offset).min(len.into());
        let mut bytes = vec![0; usize::try_from(left).unwrap_or(0)];
        Ok(blob
            .file
            .read_exact_at(&mut bytes, offset)
            .map(|()| bytes)
            .map_err(|error| unreadable("blob", &error)))
    }

    fn drop(&mut self, blob: Resource<OpenBlob>) -> wasmtime::Result<()> {
        self.table.delete(blob)?;
        Ok(())
    }
}

fn open(path: &Path) -> std::io::Result<OpenBlob> {
    // Checked before the file is opened, because opening a pipe would wait for its other end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    Ok(OpenBlob { size, file })
}

fn unreadable(name: &str, error: &std::io::Error) -> types::Error {
    types::Error {
        code: "unreadable".into(),
        message: format!("cannot read `{name}`: {error}"),
        hint: None,
        path: None,
    }
}
