//! The capabilities `log`, `random`, `tokens` and `blobs`, as the host implements them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use veeksha_stats::RandomStream;
use wasmtime::component::Resource;

use crate::bindings::{blobs, log, random, records, tokens, types};
use crate::granted_folder::{NOT_GRANTED, regular};
use crate::grants::{LogLevel, PluginTokenizer};
use crate::guest_resources::OpenBlob;
use crate::host_call::HostCall;
use crate::host_refusal::HostRefusal;
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
            return Err(HostRefusal::arguments(format!(
                "random: {} words requested in one call, at most {} are allowed",
                grouped(count.into()),
                grouped(MAX_WORDS_PER_CALL.into())
            )));
        }
        let mut words = vec![0; count as usize];
        RandomStream::new(self.seed, session, &stream).fill(first.into(), &mut words);
        self.last_host_call = Some(HostCall::Words {
            session,
            stream,
            first,
            count,
        });
        Ok(words)
    }
}

impl HostState {
    /// The token ids of a text of a permitted size.
    fn ids(&mut self, text: &str, function: &'static str) -> wasmtime::Result<Vec<u32>> {
        self.last_host_call = Some(HostCall::Tokens {
            function,
            bytes: text.len(),
        });
        if text.len() > self.count_bytes {
            return Err(HostRefusal::arguments(format!(
                "tokens: a text of {} bytes passed to `{function}`, at most {} are allowed; pass it in parts",
                grouped(text.len() as u64),
                grouped(self.count_bytes as u64)
            )));
        }
        let ids = self.tokenizer()?.encode(text);
        ids.map_err(|reason| HostRefusal::arguments(format!("tokens: `{function}` has no result: {reason}")))
    }

    fn tokenizer(&self) -> wasmtime::Result<&dyn PluginTokenizer> {
        self.tokens.as_deref().ok_or_else(|| {
            HostRefusal::not_granted("tokens: not granted (this run does not grant the plugin a tokenizer)")
        })
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
        self.last_host_call = Some(HostCall::Vocabulary);
        Ok(self.tokenizer()?.vocabulary())
    }
}

impl HostState {
    /// Adds an open blob to the guest's handles, of which it may have a limited number.
    fn keep_blob(&mut self, blob: OpenBlob) -> wasmtime::Result<Resource<OpenBlob>> {
        self.table.push(blob).map_err(|_| {
            HostRefusal::objects("blobs: too many handles are open; drop a blob when it has been read")
        })
    }
}

impl HostState {
    /// Keeps the refusal of a file for the log and for reports, and adds the names of single files
    /// to its hint.
    fn noted(&self, mut refused: types::Error) -> types::Error {
        if refused.code == NOT_GRANTED {
            let hint = refused.hint.get_or_insert_default();
            self.note(&format!("{}; {hint}", refused.message));
            if !self.blobs.is_empty() {
                let names: Vec<&str> = self.blobs.keys().map(String::as_str).collect();
                *hint = format!("granted names: {}; {hint}", names.join(", "));
            }
        }
        refused
    }
}

impl blobs::Host for HostState {}

impl blobs::HostBlob for HostState {
    fn open(&mut self, name: String) -> wasmtime::Result<Result<Resource<OpenBlob>, types::Error>> {
        self.last_host_call = Some(HostCall::BlobOpen { name: name.clone() });
        let opened = match self.blobs.get(&name) {
            Some(path) => open(path).map_err(|error| unreadable(&name, &error)),
            None => self.folder.open(&name).map_err(|refused| self.noted(refused)),
        };
        match opened {
            Ok(blob) => Ok(Ok(self.keep_blob(blob)?)),
            Err(refused) => Ok(Err(refused)),
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
        self.last_host_call = Some(HostCall::BlobRead { offset, len });
        let blob = self.table.get(&blob)?;
        if len > MAX_READ_BYTES {
            return Err(HostRefusal::arguments(format!(
                "blobs: {} bytes requested in one read, at most {} are allowed",
                grouped(len.into()),
                grouped(MAX_READ_BYTES.into())
            )));
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
    regular(File::open(path)?)
}

fn unreadable(name: &str, error: &std::io::Error) -> types::Error {
    types::Error {
        code: "unreadable".into(),
        message: format!("cannot read `{name}`: {error}"),
        hint: None,
        path: None,
    }
}
