//! The prompt tokens by what the servers' caches could have known, on the terminal and on the page.

use veeksha_metrics::{CacheAccounting, CacheClass, CacheEdge, CacheEdgeKind, ClassifiedPrompts, Evaluation};
use veeksha_page::{GroupTable, GroupValues, ValueColumn};
use veeksha_report::{Section, SummaryRow, number, share};

use crate::rows::row;

/// Maximum number of kinds of edges with a row.
const MAX_EDGES: usize = 8;

/// Returns the section of the closing table; without rows if the servers report no cached tokens,
/// or if every token was first seen.
pub(crate) fn section(evaluation: &Evaluation) -> Section {
    let rows = evaluation
        .cache
        .as_ref()
        .filter(|cache| has_classes(cache))
        .map(rows);
    Section {
        title: "Prompt tokens by cache state".into(),
        columns: headings().collect(),
        rows: rows.unwrap_or_default(),
    }
}

/// Returns the table of the page; `None` where the section of the terminal has no rows.
pub(crate) fn table(evaluation: &Evaluation) -> Option<GroupTable> {
    let cache = evaluation.cache.as_ref().filter(|cache| has_classes(cache))?;
    let (lines, left_out) = lines(cache);
    let column = |(place, label): (usize, String)| ValueColumn {
        label,
        unit: if place == 0 { "" } else { "share" }.to_owned(),
    };
    Some(GroupTable {
        label: "Requests".into(),
        remark: left_out,
        columns: headings().enumerate().map(column).collect(),
        rows: lines
            .into_iter()
            .map(|(value, prompts)| GroupValues {
                value,
                values: std::iter::once(Some(prompts.tokens.total() as f64))
                    .chain(CacheClass::ALL.map(|class| prompts.share(class)))
                    .collect(),
            })
            .collect(),
    })
}

fn headings() -> impl Iterator<Item = String> {
    let classes = CacheClass::ALL.map(CacheClass::title);
    std::iter::once("prompt tokens").chain(classes).map(str::to_owned)
}

fn has_classes(cache: &CacheAccounting) -> bool {
    cache.total.tokens.class(CacheClass::New) < cache.total.tokens.total()
}

fn rows(cache: &CacheAccounting) -> Vec<SummaryRow> {
    let (lines, left_out) = lines(cache);
    let cells = |prompts: &ClassifiedPrompts| {
        let shares = CacheClass::ALL.map(|class| prompts.share(class).map_or_else(|| "-".to_owned(), share));
        std::iter::once(number(prompts.tokens.total() as f64))
            .chain(shares)
            .collect()
    };
    let rows = lines.iter().map(|(name, prompts)| row(name, cells(prompts)));
    rows.chain(left_out.map(|remark| row(&remark, Vec::new())))
        .collect()
}

/// Returns the row of the run and those of its edges with the most tokens that were not reused, and
/// a remark if there are more.
fn lines(cache: &CacheAccounting) -> (Vec<(String, ClassifiedPrompts)>, Option<String>) {
    let mut lines = vec![("All".to_owned(), cache.total)];
    if cache.edges.len() < 2 {
        return (lines, None);
    }
    let mut edges: Vec<&(CacheEdge, ClassifiedPrompts)> = cache.edges.iter().collect();
    if edges.len() > MAX_EDGES {
        let computed =
            |prompts: &ClassifiedPrompts| prompts.tokens.total() - prompts.tokens.class(CacheClass::Reused);
        edges.sort_by_key(|(_, prompts)| std::cmp::Reverse(computed(prompts)));
    }
    let shown = edges.iter().take(MAX_EDGES);
    lines.extend(shown.map(|(edge, prompts)| (edge_text(edge), *prompts)));
    let left_out = edges.len().saturating_sub(MAX_EDGES);
    let remark =
        (left_out > 0).then(|| format!("{left_out} more kinds of edges: see metrics/cache_accounting.csv"));
    (lines, remark)
}

/// Returns the name of a kind of edge.
fn edge_text(edge: &CacheEdge) -> String {
    let CacheEdge { kind, from, to } = edge;
    let agents = if from == to {
        to.clone()
    } else {
        format!("{from} → {to}")
    };
    match kind {
        CacheEdgeKind::Start => format!("  {to}: first turns"),
        CacheEdgeKind::History => format!("  {agents}: with history"),
        CacheEdgeKind::NoHistory => format!("  {agents}: without history"),
    }
}
