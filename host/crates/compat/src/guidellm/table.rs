//! GuideLLM's tables of latency and throughput.

use super::by_status::ByStatus;
use super::distribution::GuidellmDistribution;

/// Contents of the tables.
#[derive(Debug, Default)]
pub(crate) struct TableContents {
    metrics: Vec<(&'static str, ByStatus)>,
    /// Attainment and rate, if objectives were given.
    pub(crate) goodput: Option<(Option<f64>, Option<ByStatus>)>,
}

/// Group, name, unit or statistic, value.
type TableColumn = [String; 4];

impl TableContents {
    pub(crate) fn put(&mut self, name: &'static str, statuses: ByStatus) {
        self.metrics.push((name, statuses));
    }

    fn metric(&self, name: &str) -> Option<&ByStatus> {
        self.metrics
            .iter()
            .find(|metric| metric.0 == name)
            .map(|metric| &metric.1)
    }

    pub(crate) fn draw(&self) -> String {
        let successful = |statuses: &ByStatus| statuses.successful.clone();
        let total = |statuses: &ByStatus| statuses.total.clone();
        let columns = |metric: &str,
                       of: fn(&ByStatus) -> GuidellmDistribution,
                       group: &str,
                       name: &str,
                       stats: &[&str]| {
            let distribution = self.metric(metric).map(of);
            let column = |stat: &&str| {
                let value = distribution.as_ref().map(|distribution| match *stat {
                    "Mean" => distribution.mean,
                    "Mdn" => distribution.median(),
                    _ => distribution.p95(),
                });
                let value = value.map_or_else(|| "--".to_owned(), |value| format!("{value:.1}"));
                [group.to_owned(), name.to_owned(), (*stat).to_owned(), value]
            };
            stats.iter().map(column).collect::<Vec<TableColumn>>()
        };
        let strategy = || [["Benchmark", "Strategy", "", "recorded"].map(str::to_owned)].to_vec();
        let three = ["Mean", "Mdn", "p95"];
        let two = ["Mdn", "p95"];

        let mut tokens = strategy();
        for (metric, group, name) in [
            ("prompt_token_count", "Input Tok", "Per Req"),
            ("output_token_count", "Output Tok", "Per Req"),
            ("total_token_count", "Total Tok", "Per Req"),
            ("request_streaming_iterations_count", "Stream Iter", "Per Req"),
            ("output_tokens_per_iteration", "Output Tok", "Per Stream Iter"),
        ] {
            tokens.extend(columns(metric, successful, group, name, &two));
        }
        let mut latency = strategy();
        for (metric, group, name) in [
            ("request_latency", "Request Latency", "Sec"),
            ("time_to_first_token_ms", "TTFT", "ms"),
            ("time_to_first_output_token_ms", "TTFOT", "ms"),
            ("inter_token_latency_ms", "ITL", "ms"),
            ("time_per_output_token_ms", "TPOT", "ms"),
        ] {
            latency.extend(columns(metric, successful, group, name, &three));
        }
        let mut throughput = strategy();
        throughput.extend(columns(
            "request_concurrency",
            total,
            "Requests",
            "Concurrency",
            &["Mdn", "Mean"],
        ));
        for (metric, group) in [
            ("requests_per_second", "Requests"),
            ("prompt_tokens_per_second", "Input Tokens"),
            ("output_tokens_per_second", "Output Tokens"),
            ("tokens_per_second", "Total Tokens"),
        ] {
            throughput.extend(columns(metric, total, group, "Per Sec", &["Mean"]));
        }
        if let Some((attained, rates)) = &self.goodput {
            let cell =
                |value: Option<f64>| value.map_or_else(|| "--".to_owned(), |value| format!("{value:.1}"));
            let share = cell(attained.map(|share| share * 100.0));
            let rate = cell(rates.as_ref().map(|rates| rates.total.mean));
            throughput.push(["Goodput".into(), "Attainment".into(), "%".into(), share]);
            throughput.push(["Goodput".into(), "Per Sec".into(), "Mean".into(), rate]);
        }
        [
            draw("Request Token Statistics (Completed Requests)", &tokens),
            draw("Request Latency Statistics (Completed Requests)", &latency),
            draw("Server Throughput Statistics (All Requests)", &throughput),
        ]
        .concat()
    }
}

/// `Console.print_table`: equal neighbouring headings form one cell.
fn draw(title: &str, columns: &[TableColumn]) -> String {
    let padded = |text: &str| {
        if text.is_empty() {
            String::new()
        } else {
            format!(" {text} ")
        }
    };
    let cells: Vec<TableColumn> = columns
        .iter()
        .map(|column| column.each_ref().map(|cell| padded(cell)))
        .collect();
    let mut widths: Vec<usize> = cells
        .iter()
        .map(|column| column[2].len().max(column[3].len()))
        .collect();
    // A heading that spans columns needs their joint width, including the bars between them.
    let heading = |column: usize, row: usize| cells[column][row].as_str();
    let spans = |row: usize| {
        let mut spans: Vec<std::ops::Range<usize>> = Vec::new();
        for at in 0..cells.len() {
            let joins = spans.last().is_some_and(|span| {
                let same = |row: usize| heading(span.start, row) == heading(at, row);
                !heading(at, row).is_empty() && (0..=row).all(same)
            });
            match spans.last_mut() {
                Some(span) if joins && row < 2 => span.end = at + 1,
                _ => spans.push(at..at + 1),
            }
        }
        spans
    };
    for row in 0..2 {
        for span in spans(row) {
            let has = widths[span.clone()].iter().sum::<usize>() + span.len() - 1;
            let wants = heading(span.start, row).len();
            if let (true, Some(last)) = (wants > has, widths.get_mut(span.end - 1)) {
                *last += wants - has;
            }
        }
    }
    let divider = |fill: &str| {
        let parts: Vec<String> = widths.iter().map(|&width| fill.repeat(width)).collect();
        format!("|{}|\n", parts.join("|"))
    };
    let mut text = format!("\n{title}\n{}", divider("="));
    for row in 0..3 {
        let parts: Vec<String> = spans(row)
            .into_iter()
            .map(|span| {
                let width = widths[span.clone()].iter().sum::<usize>() + span.len() - 1;
                format!("{:<width$}", heading(span.start, row))
            })
            .collect();
        text += &format!("|{}|\n", parts.join("|"));
    }
    text += &divider("-");
    let values: Vec<String> = cells
        .iter()
        .zip(&widths)
        .map(|(column, &width)| format!("{:<width$}", column[3]))
        .collect();
    text += &format!("|{}|\n", values.join("|"));
    text + &divider("=")
}
