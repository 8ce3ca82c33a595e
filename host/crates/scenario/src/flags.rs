//! Veeksha's dotted flags, separated from the program's own flags.

/// The rest of the command line, and the overrides found in it, in order.
pub type Split = (Vec<String>, Vec<(String, String)>);

/// The root keys that are flags themselves; the values of tables and lists are given as YAML.
const ROOT_KEYS: [&str; 14] = [
    "name",
    "description",
    "tags",
    "seed",
    "session_generator",
    "traffic_scheduler",
    "tools",
    "evaluators",
    "client",
    "clients",
    "endpoint",
    "runtime",
    "trace_recorder",
    "certificate",
];

/// Extracts the scenario overrides from a command line, for [`crate::Document::set`]:
///
/// - `--traffic_scheduler.interval_generator.arrival_rate 5` and `--a.b=5`: every flag whose name
///   contains a dot or a bracket;
/// - `--seed 7`, `--name baseline`, `--output_dir out` and `--output-dir out`: the keys of the
///   scenario's root;
/// - `--a.values 128 256 512`: if the first value is a number, all numbers that follow belong to
///   it. Other lists are written as YAML, `--a.names '[x, y]'`.
///
/// All other arguments, and everything after a `--`, are left for the program's parser, in order.
///
/// A flag without a value gets an empty one, which [`crate::Document::set`] refuses.
pub fn dotted_flags(arguments: Vec<String>) -> Split {
    let mut rest = Vec::new();
    let mut overrides = Vec::new();
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            rest.push(argument);
            rest.extend(arguments);
            break;
        }
        let Some((path, given)) = override_flag(&argument) else {
            rest.push(argument);
            continue;
        };
        let first = match given {
            Some(value) => {
                overrides.push((path, value));
                continue;
            }
            None => arguments
                .next_if(|next| !next.starts_with("--"))
                .unwrap_or_default(),
        };
        let mut values = vec![first];
        if is_number(&values[0]) {
            while let Some(next) = arguments.next_if(|next| is_number(next)) {
                values.push(next);
            }
        }
        let value = if values.len() == 1 {
            values.remove(0)
        } else {
            format!("[{}]", values.join(", "))
        };
        overrides.push((path, value));
    }
    (rest, overrides)
}

/// Returns the path and, if given with `=`, the value; `None` for one of the program's flags.
fn override_flag(argument: &str) -> Option<(String, Option<String>)> {
    let flag = argument.strip_prefix("--")?;
    // An `=` inside brackets (`headers[a=b]`) belongs to the name.
    let mut in_brackets = false;
    let equals = flag.find(|character| {
        in_brackets = match character {
            '[' => true,
            ']' => false,
            _ => in_brackets,
        };
        character == '=' && !in_brackets
    });
    let (name, value) = match equals {
        Some(at) => (&flag[..at], Some(flag[at + 1..].to_owned())),
        None => (flag, None),
    };
    let path = match name {
        "output_dir" | "output-dir" => "output_dir".to_owned(),
        _ if ROOT_KEYS.contains(&name) => name.to_owned(),
        _ if name.contains(['.', '[']) && !name.starts_with(['.', '[']) => name.to_owned(),
        _ => return None,
    };
    Some((path, value))
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}
