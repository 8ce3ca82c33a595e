//! Every scenario runs, and every command in the documents works.

use crate::results::{latest, lines};
use crate::support::{UNJUDGED, assert_code, program, root, veeksha};

#[test]
fn every_scenario_is_checked_and_run() {
    assert!(
        run_all("scenarios") >= 3,
        "the scenarios are where this test looks for them"
    );
}

#[test]
fn every_flavor_has_a_trace_and_a_scenario_that_runs() {
    let flavors = std::fs::read_dir(root().join("plugins"))
        .expect("plugins")
        .filter(|entry| {
            let folder = entry.as_ref().expect("an entry").path();
            folder.join("schema.json").exists()
                && !["synthetic", "ollama", "tiered_slo"]
                    .iter()
                    .any(|other| folder.ends_with(other))
        })
        .inspect(|entry| {
            let folder = entry.as_ref().expect("an entry").path();
            let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
            let scenario = root().join(format!("scenarios/traces/{name}.lua"));
            assert!(scenario.exists(), "{} is missing", scenario.display());
            assert!(folder.join("README.md").exists(), "{name} is not documented");
        });
    assert_eq!(flavors.count(), run_all("scenarios/traces"));
}

/// The excerpts of the cookbook are those of its scenarios, which run.
#[test]
fn every_recipe_of_the_cookbook_runs_and_is_quoted_exactly() {
    let text = std::fs::read_to_string(root().join("docs/cookbook.md")).expect("the cookbook");
    let mut scenario = String::new();
    let mut quoted = std::collections::BTreeSet::new();
    let mut excerpt: Option<String> = None;
    for line in text.lines() {
        let names = line.split('`').skip(1).step_by(2);
        if let Some(name) = names
            .into_iter()
            .find(|name| name.starts_with("scenarios/cookbook/"))
        {
            scenario = name.to_owned();
        }
        if line == "```lua" {
            excerpt = Some(String::new());
        } else if line == "```" {
            if let Some(excerpt) = excerpt.take() {
                let source = std::fs::read_to_string(root().join(&scenario)).expect(&scenario);
                assert!(
                    source.contains(&excerpt),
                    "{scenario} does not contain:\n{excerpt}"
                );
                quoted.insert(scenario.clone());
            }
        } else if let Some(excerpt) = &mut excerpt {
            excerpt.push_str(line);
            excerpt.push('\n');
        }
    }
    assert_eq!(run_all("scenarios/cookbook"), quoted.len(), "{quoted:?}");
}

/// Checks and runs every scenario of a folder, and returns their number.
fn run_all(folder: &str) -> usize {
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join(folder)).expect("scenarios") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !matches!(
            path.extension().and_then(|end| end.to_str()),
            Some("lua" | "yml" | "yaml")
        ) {
            continue;
        }
        seen += 1;
        let path = path.to_str().expect("UTF-8");
        let is_sweep = name == "sweep.yml";
        assert_code(&veeksha(["check", path]), 0);
        let folder = tempfile::tempdir().expect("a folder");
        let output_dir = folder.path().to_str().expect("UTF-8");
        // A Veeksha configuration names a server; the test uses the built-in simulator instead.
        let output = veeksha([
            "run",
            path,
            "--output_dir",
            output_dir,
            "--client.api_base",
            "sim://fast",
        ]);
        assert_code(&output, 0);
        let out = if is_sweep {
            crate::sweeps::folder_of_the_only_sweep(folder.path())
        } else {
            folder.path().to_owned()
        };
        assert!(
            !lines(&latest(&out), "metrics/request_level_metrics.jsonl").is_empty(),
            "{name}"
        );
    }
    seen
}

/// Returns the commands of a document: the lines of its `sh` blocks, joined at `\`.
fn commands(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(document)).expect(document);
    let mut commands = Vec::new();
    let mut inside = false;
    let mut line_so_far = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside {
            line_so_far.push_str(line.trim_end_matches('\\'));
            if !line.ends_with('\\') {
                commands.push(std::mem::take(&mut line_so_far));
            }
        }
    }
    commands
}

/// Splits a command into words like a shell: quotes preserve blanks, `#` begins a comment.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    for letter in command.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '"' || letter == '\'' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            None if letter == '#' && word.is_none() => break,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[test]
fn every_command_of_the_documents_works() {
    let sim = crate::server::Sim::start(&["--profile", "fast"]);
    let folder = tempfile::tempdir().expect("a folder");
    let output_dir = folder.path().to_str().expect("UTF-8").to_owned();
    let sweeps = format!("{output_dir}/sweeps");
    let mut run = 0;
    for document in [
        "README.md",
        "sdk/lua/README.md",
        "plugins/README.md",
        "docs/traffic.md",
        "docs/traces.md",
        "docs/plugins.md",
        "docs/plugin-testing.md",
        "docs/cookbook.md",
        "docs/prompts.md",
        "docs/targets.md",
        "docs/accuracy.md",
        "docs/metrics.md",
        "docs/comparing.md",
        "docs/sweeps.md",
        "docs/other-tools.md",
    ] {
        for command in commands(document) {
            let words = words(&command);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let arguments = match words.as_slice() {
                ["cargo", "run", "--release", "--", rest @ ..] | ["veeksha-host", rest @ ..] => rest,
                // Takes minutes.
                ["cargo", "run", "--release", "-p", "veeksha-bench", ..] => continue,
                // Commands that CI runs itself, or that a user runs once.
                ["cargo", "test" | "build", ..]
                | ["cargo", "xtask", ..]
                | ["cargo", "install", ..]
                | ["rustup", ..]
                | [] => continue,
                other => panic!("{document}: no test knows how to run {other:?}"),
            };
            // The server on port 8000 and the runs are the reader's; the test replaces them.
            let latest = format!("{output_dir}/latest");
            let arguments: Vec<String> = arguments
                .iter()
                .map(|word| word.replace("http://localhost:8000/v1", &sim.api_base))
                .map(|word| word.replace("../benchmark_output/latest", &latest))
                .map(|word| match word.strip_prefix("benchmark_output/") {
                    Some("latest" | "A" | "B") => latest.clone(),
                    _ => word,
                })
                .collect();
            let mut child = program();
            child.args(&arguments);
            match arguments.first().map(String::as_str) {
                Some(command @ ("run" | "simulate")) => {
                    // `latest` of the later commands is a run, not a sweep.
                    let is_sweep = arguments.iter().any(|argument| argument.ends_with("sweep.yml"));
                    let folder = if is_sweep { &sweeps } else { &output_dir };
                    child.args(["--output_dir", folder]);
                    if command == "run" {
                        child.args(UNJUDGED);
                    }
                }
                // `sim` serves until it is stopped, and `doctor` depends on the machine of the
                // tests.
                Some("sim" | "doctor") => continue,
                _ => {}
            }
            let output = child.output().expect("the program starts");
            assert!(
                output.status.success(),
                "{document}: `{command}`: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            run += 1;
        }
    }
    assert!(run >= 4, "the documents show commands");
    sim.stop();
}
