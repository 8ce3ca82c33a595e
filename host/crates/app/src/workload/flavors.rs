//! Factory of the flavor of a scenario's trace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Json;
use veeksha_ports::{
    ArrivalColumn, CellType, FlavorFactory, Grouping, Layout, MostFrequent, TimestampUnit, TraceColumn,
};
use veeksha_prompt::Tokenizer;
use veeksha_scenario::{Flavor, LuaColumn, LuaLayout};

use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;
use crate::workload::components;
use crate::workload::grants::lua_grants;
use crate::workload::shipped;

/// Returns the factory of a scenario's flavor.
pub(crate) fn factory(
    loaded: &Loaded,
    flavor: &Flavor,
    tokenizer: &Tokenizer,
) -> Result<Arc<dyn FlavorFactory>, CommandFailure> {
    match flavor {
        Flavor::Shipped { name, config } => {
            let Some(bytes) = shipped::flavor(name) else {
                return Err(CommandFailure::internal(format!(
                    "the component {name} is not in this binary"
                )));
            };
            let plugin = components::load(loaded, name, bytes)?;
            let grants = components::grants(loaded, &files_in(config), tokenizer);
            Ok(plugin.flavor(config.to_string(), grants)?)
        }
        Flavor::Wasm(component) => {
            let opened = components::open(loaded, component, "session_generator.flavor", tokenizer)?;
            Ok(opened.plugin.flavor(opened.config, opened.grants)?)
        }
        Flavor::Lua {
            layout, has_warmup, ..
        } => {
            let lua = loaded.lua("session_generator.flavor")?;
            let grants = lua_grants(loaded, tokenizer);
            lua.flavor(
                "session_generator.flavor",
                self::layout(layout, *has_warmup),
                *has_warmup,
                grants,
            )
            .map_err(CommandFailure::usage)
        }
    }
}

/// Keys of shipped flavors that name a file. Naming a file there grants it.
pub(crate) const FILE_KEYS: [&str; 1] = ["corpus_file"];

fn files_in(config: &Json) -> BTreeMap<String, PathBuf> {
    let named = FILE_KEYS
        .iter()
        .filter_map(|key| config.get(key).and_then(Json::as_str));
    named
        .filter(|name| !name.is_empty())
        .map(|name| (name.to_owned(), PathBuf::from(name)))
        .collect()
}

/// Converts the requirements of a Lua flavor on its file.
pub(crate) fn layout(typed: &LuaLayout, warms_up: bool) -> Layout {
    let columns = typed.columns.iter().map(|(name, column)| {
        let (typed, required, aliases) = match column {
            LuaColumn::Cell(cell) => (*cell, true, Vec::new()),
            LuaColumn::Full {
                cell,
                required,
                aliases,
            } => (*cell, *required, aliases.clone()),
        };
        TraceColumn {
            name: name.clone(),
            aliases,
            cell: cell(typed),
            required,
        }
    });
    let grouping = match (&typed.group_by, &typed.tree, typed.pools) {
        (Some(column), _, _) => Grouping::Column(column.clone()),
        (None, Some(tree), _) => Grouping::Tree {
            id: tree.id.clone(),
            parent: tree.parent.clone(),
        },
        (None, None, true) => Grouping::Pools,
        (None, None, false) => Grouping::Row,
    };
    Layout {
        columns: columns.collect(),
        rows_in: typed.rows_in.clone(),
        grouping,
        arrival: typed.arrival.as_ref().map(|arrival| ArrivalColumn {
            column: arrival.column.clone(),
            unit: unit(arrival.unit),
        }),
        keep: typed.keep.as_ref().map(|keep| MostFrequent {
            column: keep.column.clone(),
            count: keep.count,
        }),
        warms_up,
    }
}

fn cell(typed: veeksha_scenario::Cell) -> CellType {
    use veeksha_scenario::Cell as Typed;
    match typed {
        Typed::Text => CellType::Text,
        Typed::Count => CellType::Count,
        Typed::Integer => CellType::Integer,
        Typed::Number => CellType::Number,
        Typed::Truth => CellType::Truth,
        Typed::Items => CellType::Items,
        Typed::Members => CellType::Members,
        Typed::Anything => CellType::Anything,
    }
}

fn unit(typed: veeksha_scenario::TimeUnit) -> TimestampUnit {
    use veeksha_scenario::TimeUnit as Typed;
    match typed {
        Typed::Seconds => TimestampUnit::Seconds,
        Typed::Milliseconds => TimestampUnit::Milliseconds,
        Typed::Microseconds => TimestampUnit::Microseconds,
        Typed::Nanoseconds => TimestampUnit::Nanoseconds,
        Typed::DateTime => TimestampUnit::DateTime,
    }
}
