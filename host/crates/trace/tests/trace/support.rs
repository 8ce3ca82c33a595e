//! A flavor that echoes its input, and traces written by the tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use veeksha_model::{HistoryMode, Message, NodeId, Recorded, Replay, Request, Role, Segment, Session};
use veeksha_ports::{
    ArrivalColumn, CellType, FlavorFactory, FlavorInstance, Grouping, Layout, PluginFailure,
    PluginFailureKind, SessionSource, TimestampUnit, TraceColumn, TraceFacts, TraceGroup, Workload,
    WorkloadInfo,
};
use veeksha_trace::{BadRowRule, CheckExtent, OpenTrace, Order, TraceError, TraceOptions, open};

/// Makes one request for each row, whose text is the row's fields. Refuses rows that contain
/// `"refuse"`, traps on `"trap"`.
pub(crate) struct Echo {
    info: WorkloadInfo,
    layout: Layout,
}

impl Echo {
    pub(crate) fn of(layout: Layout) -> Arc<dyn FlavorFactory> {
        Arc::new(Echo {
            info: WorkloadInfo {
                name: "echo".into(),
                version: "1".into(),
                summary: String::new(),
                engine: "test",
                digest: String::new(),
                granted: Vec::new(),
            },
            layout,
        })
    }
}

impl FlavorFactory for Echo {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn FlavorInstance>, PluginFailure> {
        Ok(Box::new(Instance {
            layout: self.layout.clone(),
            broken: false,
        }))
    }
}

struct Instance {
    layout: Layout,
    broken: bool,
}

impl Instance {
    fn session(
        &mut self,
        facts: &TraceFacts,
        epoch: u64,
        group: &TraceGroup,
    ) -> Result<Session, PluginFailure> {
        let fail = |kind, message: &str| PluginFailure::new("echo", "flavor.sessions", kind, message);
        assert!(!self.broken, "a broken instance is used again");
        for row in &group.rows {
            if row.fields.contains("\"refuse\"") {
                let kind = PluginFailureKind::Refused {
                    code: "row".into(),
                    hint: None,
                    path: None,
                };
                return Err(fail(kind, &format!("row {}: not this one", row.number)));
            }
            if row.fields.contains("\"trap\"") {
                self.broken = true;
                return Err(fail(PluginFailureKind::Trap, "unreachable"));
            }
        }
        let requests = group.rows.iter().enumerate().map(|(node, row)| Request {
            node: NodeId(node as u32),
            messages: vec![Message::new(Role::User, vec![Segment::Text(row.fields.clone())])],
            labels: vec![("row".into(), row.number.to_string())],
            replay: Some(Box::new(Replay {
                history: HistoryMode::Live,
                answer: None,
                recorded: Recorded {
                    at: row.at,
                    ..Recorded::default()
                },
            })),
            ..Request::default()
        });
        Ok(Session {
            requests: requests.collect(),
            labels: vec![
                ("index".into(), group.index.to_string()),
                ("key".into(), group.key.clone()),
                ("epoch".into(), epoch.to_string()),
                ("facts".into(), format!("{} {}", facts.rows, facts.groups)),
            ],
            ..Session::default()
        })
    }
}

impl FlavorInstance for Instance {
    fn layout(&mut self) -> Result<Layout, PluginFailure> {
        Ok(self.layout.clone())
    }

    fn sessions(
        &mut self,
        facts: &TraceFacts,
        epoch: u64,
        groups: &[TraceGroup],
    ) -> Result<Vec<Session>, PluginFailure> {
        groups
            .iter()
            .map(|group| self.session(facts, epoch, group))
            .collect()
    }

    fn warmup(&mut self, facts: &TraceFacts, groups: &[TraceGroup]) -> Result<Vec<Session>, PluginFailure> {
        self.sessions(facts, 0, groups)
    }
}

/// Returns columns from `name:cell`; a `!` behind the cell makes it required, aliases follow after
/// `|`.
pub(crate) fn layout(columns: &[&str]) -> Layout {
    let columns = columns.iter().map(|text| {
        let mut names = text.split('|');
        let (name, cell) = names.next().unwrap().split_once(':').unwrap();
        let required = cell.ends_with('!');
        let cell = match cell.trim_end_matches('!') {
            "text" => CellType::Text,
            "count" => CellType::Count,
            "integer" => CellType::Integer,
            "number" => CellType::Number,
            "truth" => CellType::Truth,
            "items" => CellType::Items,
            "members" => CellType::Members,
            "anything" => CellType::Anything,
            other => panic!("no cell {other}"),
        };
        TraceColumn {
            name: name.into(),
            aliases: names.map(Into::into).collect(),
            cell,
            required,
        }
    });
    Layout {
        columns: columns.collect(),
        rows_in: None,
        grouping: Grouping::Row,
        arrival: None,
        keep: None,
        warms_up: false,
    }
}

pub(crate) trait LayoutExt {
    fn grouped(self, column: &str) -> Layout;
    fn tree(self, id: &str, parent: &str) -> Layout;
    fn arrivals(self, column: &str, unit: TimestampUnit) -> Layout;
}

impl LayoutExt for Layout {
    fn grouped(mut self, column: &str) -> Layout {
        self.grouping = Grouping::Column(column.into());
        self
    }

    fn tree(mut self, id: &str, parent: &str) -> Layout {
        self.grouping = Grouping::Tree {
            id: id.into(),
            parent: parent.into(),
        };
        self
    }

    fn arrivals(mut self, column: &str, unit: TimestampUnit) -> Layout {
        self.arrival = Some(ArrivalColumn {
            column: column.into(),
            unit,
        });
        self
    }
}

pub(crate) fn options(path: impl Into<PathBuf>) -> TraceOptions {
    TraceOptions {
        path: path.into(),
        columns: BTreeMap::new(),
        on_bad_row: BadRowRule::Refuse,
        check: CheckExtent::Rows,
        max_row_bytes: 1 << 20,
        order: Order::File,
        wrap: false,
        seed: 42,
        scratch: None,
    }
}

/// A temporary folder with files.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Opens a file with this content.
    pub(crate) fn open(&self, bytes: impl AsRef<[u8]>, layout: Layout) -> Result<OpenTrace, TraceError> {
        open(options(self.file("trace", bytes)), Echo::of(layout))
    }

    /// Returns the message that refuses a file with this content, without the folder.
    pub(crate) fn refusal(&self, bytes: impl AsRef<[u8]>, layout: Layout) -> String {
        match self.open(bytes, layout) {
            Ok(trace) => panic!("accepted: {trace:?}"),
            Err(error) => self.without_path(&error.to_string()),
        }
    }

    pub(crate) fn without_path(&self, message: &str) -> String {
        message.replace(&format!("{}/", self.path().display()), "")
    }
}

/// Content of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) key: String,
    pub(crate) index: u64,
    pub(crate) epoch: u64,
    pub(crate) arrives_at: Option<u64>,
    /// Number, arrival, fields.
    pub(crate) rows: Vec<(u64, Option<u64>, String)>,
}

pub(crate) fn seen(session: &Session) -> Seen {
    let label = |name: &str| {
        let label = session.labels.iter().find(|(label, _)| label == name);
        label.unwrap().1.clone()
    };
    Seen {
        key: label("key"),
        index: label("index").parse().unwrap(),
        epoch: label("epoch").parse().unwrap(),
        arrives_at: session.arrives_at,
        rows: session
            .requests
            .iter()
            .map(|request| {
                let Segment::Text(fields) = &request.messages[0].content[0] else {
                    panic!("text was sent")
                };
                let at = request.replay.as_ref().unwrap().recorded.at;
                (request.labels[0].1.parse().unwrap(), at, fields.clone())
            })
            .collect(),
    }
}

pub(crate) fn source(trace: &OpenTrace) -> Box<dyn SessionSource> {
    match trace.factory().open().unwrap() {
        Workload::Planned(source) => source,
        Workload::Reactive(_) => panic!("traces are planned"),
    }
}

/// Returns the sessions `first .. first + count`.
pub(crate) fn sessions(trace: &OpenTrace, first: u64, count: u32) -> Vec<Seen> {
    source(trace)
        .sessions(first, count)
        .unwrap()
        .iter()
        .map(seen)
        .collect()
}

/// Returns the fields of all rows of the first epoch, in the order of the sessions.
pub(crate) fn fields(trace: &OpenTrace) -> Vec<String> {
    let all = sessions(trace, 0, trace.sessions_per_epoch() as u32);
    all.into_iter()
        .flat_map(|session| session.rows)
        .map(|(_, _, fields)| fields)
        .collect()
}
