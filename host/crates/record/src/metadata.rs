//! Key-value metadata of a record's files.

use parquet::file::metadata::{FileMetaData, KeyValue};
use veeksha_model::Nanos;

use crate::codes::chunk_legend;

/// The version of the format that this program writes and reads.
pub(crate) const VERSION: u32 = 1;

const VERSION_KEY: &str = "veeksha.record.version";
const TABLE_KEY: &str = "veeksha.record.table";
const RUN_KEY: &str = "veeksha.record.run";
const PROGRAM_KEY: &str = "veeksha.record.program";
const CONFIG_KEY: &str = "veeksha.record.config_blake3";
const FIRST_KEY: &str = "veeksha.record.first_position";
const END_KEY: &str = "veeksha.record.end_position";
const UNTIL_KEY: &str = "veeksha.record.until_ns";
const CHECKSUMS_KEY: &str = "veeksha.record.xxh3_of_row_groups";
const KINDS_KEY: &str = "veeksha.record.chunk_kinds";
const TIMES_KEY: &str = "veeksha.record.times";

/// The metadata of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileInfo {
    /// The run that it is of, by a name that no other run has; `None` of a file of a program that
    /// gave none yet.
    pub(crate) run: Option<String>,
    /// The program that wrote it.
    pub(crate) program: String,
    /// The digest of the configuration that the run was of; `None` where none was given.
    pub(crate) config: Option<String>,
    /// The stretch of the run's events that was written: the events of this table in it are in the
    /// file, the others in its sibling.
    pub(crate) first: u64,
    /// The first event after the stretch.
    pub(crate) end: u64,
    /// Instant at which it was written.
    pub(crate) until: Nanos,
    /// XXH3 (64 bits) of the bytes of each row group.
    pub(crate) checksums: Vec<u64>,
}

/// The reason for which a file cannot be read.
pub(crate) enum UnsupportedFile {
    /// Another program's file.
    NotOurs(String),
    /// Another version of the format.
    Version {
        /// The version.
        found: String,
        /// The program that wrote it.
        program: String,
    },
}

impl FileInfo {
    /// As pairs for the file of a table.
    pub(crate) fn to_pairs(&self, table: &str) -> Vec<KeyValue> {
        let checksums: Vec<String> = self.checksums.iter().map(|sum| format!("{sum:016x}")).collect();
        let mut pairs = vec![
            (VERSION_KEY, VERSION.to_string()),
            (TABLE_KEY, table.to_owned()),
            (PROGRAM_KEY, self.program.clone()),
            (FIRST_KEY, self.first.to_string()),
            (END_KEY, self.end.to_string()),
            (UNTIL_KEY, self.until.to_string()),
            (CHECKSUMS_KEY, checksums.join(",")),
            (
                TIMES_KEY,
                "nanoseconds since the run's zero, one monotonic clock".to_owned(),
            ),
        ];
        let named = [(RUN_KEY, &self.run), (CONFIG_KEY, &self.config)];
        pairs.extend(
            named
                .into_iter()
                .filter_map(|(key, value)| Some((key, value.clone()?))),
        );
        if table == "requests" {
            pairs.push((KINDS_KEY, chunk_legend()));
        }
        pairs
            .into_iter()
            .map(|(key, value)| KeyValue::new(key.to_owned(), value))
            .collect()
    }

    /// From the pairs of a table's file.
    pub(crate) fn of_file(metadata: &FileMetaData, table: &str) -> Result<FileInfo, UnsupportedFile> {
        let pairs = metadata.key_value_metadata().map_or(&[][..], Vec::as_slice);
        let find = |key: &str| {
            pairs
                .iter()
                .find(|pair| pair.key == key)
                .and_then(|pair| pair.value.as_deref())
        };
        let Some(version) = find(VERSION_KEY) else {
            return Err(UnsupportedFile::NotOurs(
                "it is a Parquet file, but not one of a record".into(),
            ));
        };
        let program = find(PROGRAM_KEY).unwrap_or("unknown").to_owned();
        if version != VERSION.to_string() {
            return Err(UnsupportedFile::Version {
                found: version.to_owned(),
                program,
            });
        }
        if find(TABLE_KEY) != Some(table) {
            return Err(UnsupportedFile::NotOurs(format!(
                "it does not hold the table {table}"
            )));
        }
        let number = |key: &str| {
            find(key)
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| UnsupportedFile::NotOurs(format!("its {key} is missing or not a number")))
        };
        let checksums = find(CHECKSUMS_KEY)
            .unwrap_or_default()
            .split(',')
            .filter(|sum| !sum.is_empty());
        let about = FileInfo {
            run: find(RUN_KEY).map(str::to_owned),
            program,
            config: find(CONFIG_KEY).map(str::to_owned),
            first: number(FIRST_KEY)?,
            end: number(END_KEY)?,
            until: number(UNTIL_KEY)?,
            checksums: checksums
                .map(|sum| u64::from_str_radix(sum, 16))
                .collect::<Result<_, _>>()
                .map_err(|_| UnsupportedFile::NotOurs(format!("its {CHECKSUMS_KEY} are not checksums")))?,
        };
        if about.end < about.first {
            return Err(UnsupportedFile::NotOurs(
                "its events end before they begin".into(),
            ));
        }
        Ok(about)
    }
}
