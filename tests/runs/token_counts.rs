//! Servers that count tokens in different ways: one or several tokens in a chunk, usage that is
//! right, wrong, zero or absent.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::results::{json, latest, lines};
use crate::support::{assert_code, scenario, stdout, veeksha};

/// Words of one token each, by the embedded tokenizer.
const WORD: &str = " the";

const SCENARIO: &str = r#"
session_generator:
  type: synthetic
  session_graph: { type: single_request }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 20 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 20 } } }
traffic_scheduler: { type: concurrent, target_concurrent_sessions: 8, rampup_seconds: 0 }
client: { type: openai_chat_completions, model: m, request_timeout: 20 }
runtime: { max_sessions: 32, benchmark_timeout: 0 }
"#;

/// The answers of a server.
#[derive(Clone)]
struct Answers {
    /// Words in each chunk.
    chunks: Vec<usize>,
    /// The output tokens that it reports; `None` without usage.
    usage: Option<u32>,
    /// The prompt tokens that it reports with them.
    prompt: u32,
}

/// Starts a server that answers every connection with the same stream, one chunk each 2 ms.
fn serve(answers: &Answers) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answers = answers.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let answers = answers.clone();
            std::thread::spawn(move || answer(stream, &answers));
        }
    });
    format!("http://{address}/v1")
}

fn answer(mut stream: TcpStream, answers: &Answers) {
    let mut request = [0; 65_536];
    let _ = stream.set_nodelay(true);
    let _ = stream.read(&mut request);
    let mut events =
        vec!["HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_owned()];
    events.extend(answers.chunks.iter().map(|words| {
        let text = WORD.repeat(*words);
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    }));
    events
        .push("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n".to_owned());
    events.extend(answers.usage.map(|tokens| {
        format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{},\"completion_tokens\":{tokens}}}}}\n\n",
            answers.prompt
        )
    }));
    events.push("data: [DONE]\n\n".to_owned());
    for event in events {
        if stream.write_all(event.as_bytes()).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The results of a run against a server.
struct Counted {
    certificate: Value,
    table: String,
    rows: Vec<Value>,
}

impl Counted {
    fn run(chunks: Vec<usize>, usage: Option<u32>, flags: &[&str]) -> Counted {
        let folder = tempfile::tempdir().expect("a folder");
        let file = scenario(folder.path(), "counted.yml", SCENARIO);
        let api_base = serve(&Answers {
            chunks,
            usage,
            prompt: 20,
        });
        let output_dir = folder.path().to_str().expect("UTF-8");
        let mut arguments = vec!["run", &file, "--output_dir", output_dir];
        arguments.extend(["--client.api_base", &api_base]);
        arguments.extend(flags);
        let output = veeksha(arguments);
        assert_code(&output, 0);
        let run = latest(folder.path());
        let counted = Counted {
            certificate: json(&run, "certificate.json"),
            table: stdout(&output),
            rows: lines(&run, "metrics/request_level_metrics.jsonl"),
        };
        assert_eq!(counted.rows.len(), 32);
        counted
    }

    /// Asserts the output tokens of each request, and the divisor of its TPOT.
    #[track_caller]
    fn has_tokens(&self, output: u64, after_first: f64) {
        for row in &self.rows {
            assert_eq!(row["num_output_tokens"], output, "{row}");
            let gaps = row["tbc"].as_array().expect("gaps").iter();
            let decode: f64 = gaps.filter_map(Value::as_f64).sum();
            let divisor = decode / row["tpot"].as_f64().expect("a TPOT");
            assert!((divisor - after_first).abs() < 1e-3, "{divisor}: {row}");
        }
    }

    /// Returns the disagreement of the token counts, and true if they are not verified. The file
    /// states the same next to the bound of the TPOT.
    fn doubt(&self) -> (Option<f64>, bool) {
        let of = |value: &Value| value["token_counts_unverified"].as_bool().expect("a bool");
        let tpot = &self.certificate["bounds"]["tpot"];
        let share = self.certificate["token_disagreement"]["share"].as_f64();
        let doubt = (share, of(&self.certificate));
        assert_eq!((tpot["token_disagreement"].as_f64(), of(tpot)), doubt);
        let is_marked = self.table.contains("token counts ");
        assert_eq!(is_marked, doubt != (None, false), "{}", self.table);
        doubt
    }

    /// Returns verdict and remedy of the finding with a text.
    #[track_caller]
    fn finding(&self, text: &str) -> (String, String) {
        let findings = self.certificate["findings"].as_array().expect("findings");
        let found = findings
            .iter()
            .find(|finding| finding["what"].as_str().is_some_and(|what| what.contains(text)));
        let found = found.unwrap_or_else(|| panic!("{text:?} is not in {findings:#?}"));
        let text_of = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (text_of("verdict"), text_of("remedy"))
    }
}

#[test]
fn token_counts_that_agree_are_not_marked() {
    for (name, chunks, usage, tokens, after_first) in [
        ("one token in a chunk", vec![1; 20], Some(20), 20, 19.0),
        ("the token that ends an answer", vec![1; 20], Some(21), 21, 20.0),
        ("several tokens in a chunk", vec![4; 10], Some(40), 40, 36.0),
        ("speculation", [1, 3].repeat(10), Some(40), 40, 39.0),
        (
            "a first chunk that was held back",
            [vec![10], vec![1; 20]].concat(),
            Some(30),
            30,
            20.0,
        ),
        ("no usage", vec![1; 20], None, 20, 19.0),
        ("zero usage", vec![1; 20], Some(0), 20, 19.0),
    ] {
        let counted = Counted::run(chunks, usage, &[]);
        assert_eq!(counted.doubt(), (None, false), "{name}");
        counted.has_tokens(tokens, after_first);
    }
}

#[test]
fn usage_that_chunks_and_tokenizer_contradict_is_wrong() {
    let counted = Counted::run(vec![1; 20], Some(40), &[]);
    assert_eq!(counted.doubt(), (Some(0.5), false));
    let (verdict, remedy) = counted.finding("differ by 50 % of all tokens with two counts");
    assert_eq!(verdict, "DEGRADED");
    assert!(remedy.contains("the server's usage is wrong"), "{remedy}");
    // Chunks of three tokens, which the host's tokenizer counts as four.
    let counted = Counted::run(vec![4; 10], Some(30), &[]);
    assert_eq!(counted.doubt().0, Some(10.0 / 30.0));
    let (_, remedy) = counted.finding("differ by 33.3 % of all tokens with two counts");
    assert_eq!(remedy, "name the model's tokenizer (`client.tokenizer`)");
}

/// The host counts 20 prompt tokens in each request, and the server reports 41. Ten requests are
/// too few for every metric with one sample per request.
#[test]
fn table_and_page_mark_prompt_tokens_and_metrics_that_are_not_certified() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "counted.yml", SCENARIO);
    let api_base = serve(&Answers {
        chunks: vec![1; 20],
        usage: Some(20),
        prompt: 41,
    });
    let output_dir = folder.path().to_str().expect("UTF-8");
    let flags = ["--client.api_base", &api_base, "--runtime.max_sessions", "10"];
    let output = veeksha([&["run", &file, "--output_dir", output_dir][..], &flags].concat());
    assert_code(&output, 0);
    let (run, table) = (latest(folder.path()), stdout(&output));
    let doubt = "the server counted 105 % more prompt tokens";
    let input = table.find("Input tokens per second").expect("a row");
    let (rest, _) = table[input..]
        .split_once("Output tokens per second")
        .expect("a row");
    assert!(rest.contains(doubt), "{table}");
    assert!(table.contains("not certified: 10 of 30 samples"), "{table}");
    let heading = table.lines().find(|line| line.starts_with("Certificate: "));
    assert!(
        heading.is_some_and(|line| line.contains(" have too few samples)")),
        "{table}"
    );
    let page = crate::page::data(&run);
    let text = page.to_string();
    assert!(text.contains("not certified: 10 of 30 samples"), "{text}");
    let coverage = page["certificate"]["coverage"].as_str().expect("a coverage");
    assert!(coverage.ends_with(" have too few samples"), "{coverage}");
    let marked = |list: &str, name: &str, key: &str| {
        let entries = page[list].as_array().expect("a list");
        let entry = entries.iter().find(|entry| entry["name"] == name).expect(name);
        assert_eq!(entry[key], doubt, "{entry}");
    };
    marked("key_metrics", "input_tokens_per_second", "detail");
    marked("metrics", "num_prompt_tokens", "doubt");
    let certificate = json(&run, "certificate.json");
    assert_eq!(certificate["prompt_token_disagreement"]["by_server"], 410);
}

/// A server without usage sends one token in a chunk, which the host's tokenizer counts as two: the
/// TPOT is wrong by a factor of two.
#[test]
fn counts_of_a_foreign_tokenizer_without_usage_are_not_verified() {
    for usage in [None, Some(0)] {
        let counted = Counted::run(vec![2; 20], usage, &[]);
        assert_eq!(counted.doubt(), (Some(0.5), true));
        counted.has_tokens(40, 38.0);
        let (verdict, remedy) = counted.finding("The tokenizer is not known to be the server's");
        assert_eq!(verdict, "DEGRADED");
        assert!(remedy.contains("report usage"), "{remedy}");
        counted.finding("TPOT: timing error");
    }
    // The scenario names the model's tokenizer: the server sends two tokens in a chunk.
    let named = [
        "--client.tokenizer",
        "host/crates/prompt/tokenizer/tokenizer.json",
    ];
    let counted = Counted::run(vec![2; 20], None, &named);
    assert_eq!(counted.doubt(), (None, false));
}
