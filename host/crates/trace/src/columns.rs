//! Which columns a trace is read for, and under which names they stand in its files.

use std::collections::{BTreeMap, HashMap};

use veeksha_ports::{Cell, Grouping, Layout, PluginFailure, PluginFailureKind, TimeUnit};

use crate::error::TraceError;

/// A column that is read: those of the layout first, then those that only group, keep or order.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// The flavor's name for it.
    pub(crate) name: String,
    /// The name as a JSON key, with its colon.
    pub(crate) json_key: String,
    /// What it holds.
    pub(crate) cell: Cell,
    /// Whether every row must have it.
    pub(crate) required: bool,
}

/// A name in a file, and the columns that it may stand for, each with the rank of the name among those of the column: where
/// several are there, the lowest counts.
#[derive(Clone, Debug)]
pub(crate) struct FileName {
    /// The name.
    pub(crate) name: String,
    /// Slot and rank.
    pub(crate) targets: Vec<(u16, u16)>,
    /// Whether the user renamed it.
    pub(crate) renamed: bool,
}

/// The columns of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// All that are read.
    pub(crate) slots: Vec<Slot>,
    /// How many of them reach the flavor: the first.
    pub(crate) projected: usize,
    /// The names in files.
    pub(crate) names: Vec<FileName>,
    by_name: HashMap<String, usize>,
    /// The column that groups.
    pub(crate) key: Option<usize>,
    /// The columns of a tree: id and parent.
    pub(crate) tree: Option<(usize, usize)>,
    /// The column with the arrivals.
    pub(crate) arrival: Option<(usize, TimeUnit)>,
    /// The column of which the most frequent values are kept.
    pub(crate) keep: Option<usize>,
}

impl Columns {
    /// The columns of a layout under the user's renames.
    pub(crate) fn new(
        layout: &Layout,
        renames: &BTreeMap<String, String>,
        flavor: &str,
    ) -> Result<Self, TraceError> {
        let mut columns = Columns {
            slots: Vec::new(),
            projected: layout.columns.len(),
            names: Vec::new(),
            by_name: HashMap::new(),
            key: None,
            tree: None,
            arrival: None,
            keep: None,
        };
        for column in &layout.columns {
            if columns.slots.iter().any(|slot| slot.name == column.name) {
                return Err(PluginFailure::new(
                    flavor,
                    "flavor.layout",
                    PluginFailureKind::Result,
                    format!("its layout names the column `{}` twice", column.name),
                )
                .into());
            }
            let slot = columns.slot(&column.name, column.cell, column.required);
            for (rank, alias) in column.aliases.iter().enumerate() {
                columns.bind(alias, slot, rank + 2);
            }
        }
        match &layout.grouping {
            Grouping::Column(name) => columns.key = Some(columns.slot_of(name)),
            Grouping::Tree { id, parent } => {
                columns.tree = Some((columns.slot_of(id), columns.slot_of(parent)));
            }
            Grouping::Row | Grouping::Pools => {}
        }
        columns.keep = layout.keep.as_ref().map(|keep| columns.slot_of(&keep.column));
        columns.arrival = layout
            .arrival
            .as_ref()
            .map(|arrival| (columns.slot_of(&arrival.column), arrival.unit));
        columns.rename(renames)?;
        Ok(columns)
    }

    /// Which name of [`Columns::names`] a name in a file is.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The flavor's names of the columns that it reads.
    pub(crate) fn known(&self) -> Vec<String> {
        self.slots.iter().map(|slot| slot.name.clone()).collect()
    }

    /// A slot's name for messages: the flavor's, and that in the file where it is another.
    pub(crate) fn called(&self, slot: usize, in_file: &str) -> String {
        let name = &self.slots[slot].name;
        match in_file {
            same if same == name => crate::text::quoted(name),
            other => format!("{} (`{name}`)", crate::text::quoted(other)),
        }
    }

    fn slot(&mut self, name: &str, cell: Cell, required: bool) -> usize {
        let slot = self.slots.len();
        self.slots.push(Slot {
            name: name.to_owned(),
            json_key: format!("{}:", serde_json::Value::from(name)),
            cell,
            required,
        });
        self.bind(name, slot, 1);
        slot
    }

    /// The slot of a column that the layout mentions; one of its own if the layout does not list it.
    fn slot_of(&mut self, name: &str) -> usize {
        match self.slots.iter().position(|slot| slot.name == name) {
            Some(slot) => slot,
            None => self.slot(name, Cell::Anything, false),
        }
    }

    fn bind(&mut self, name: &str, slot: usize, rank: usize) {
        let at = match self.find(name) {
            Some(at) => at,
            None => {
                self.by_name.insert(name.to_owned(), self.names.len());
                self.names.push(FileName {
                    name: name.to_owned(),
                    targets: Vec::new(),
                    renamed: false,
                });
                self.names.len() - 1
            }
        };
        let clip = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        self.names[at].targets.push((clip(slot), clip(rank)));
    }

    /// A renamed name stands for its new column and for nothing else.
    fn rename(&mut self, renames: &BTreeMap<String, String>) -> Result<(), TraceError> {
        let mut bound = Vec::new();
        for (from, to) in renames {
            let slots = match self.slots.iter().position(|slot| slot.name == *to) {
                Some(slot) => vec![slot],
                None => self
                    .find(to)
                    .map(|at| {
                        self.names[at]
                            .targets
                            .iter()
                            .map(|(slot, _)| usize::from(*slot))
                            .collect()
                    })
                    .unwrap_or_default(),
            };
            if slots.is_empty() {
                return Err(TraceError::RenameTo {
                    from: from.clone(),
                    to: to.clone(),
                    known: self.known(),
                });
            }
            bound.push((from, slots));
        }
        for (from, _) in &bound {
            if let Some(at) = self.find(from) {
                self.names[at].targets.clear();
            }
        }
        for (from, slots) in bound {
            for slot in slots {
                self.bind(from, slot, 0);
            }
            if let Some(at) = self.find(from) {
                self.names[at].renamed = true;
            }
        }
        Ok(())
    }
}
