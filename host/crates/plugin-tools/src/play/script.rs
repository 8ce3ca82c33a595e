//! Scripted answers: the ends of an agent's nodes.

use schemars::JsonSchema;
use serde::Deserialize;
use veeksha_model::{
    ErrorClass, FailureReason, Nanos, NodeId, RequestId, Response, SessionId, ToolCall, Usage,
};

/// Maximum length of a scripted time, in seconds.
const MAX_SECONDS: f64 = 1e6;

/// The ends of the nodes of each session, in order.
#[derive(Clone, Debug, Default)]
pub struct AnswerScript {
    /// The ends.
    pub ends: Vec<ScriptedEnd>,
    /// The treatment of nodes after the last one.
    pub remaining: Remaining,
}

/// The treatment of nodes that are open after the last scripted end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Remaining {
    /// They end well: requests are answered with `An answer.`, tool runs succeed.
    #[default]
    Answer,
    /// They stay open, and the session is not continued.
    Stop,
}

/// The end of one node. Without `node`, that of the open node that was sent first.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedEnd {
    /// The node.
    pub node: Option<u32>,
    /// The text of the answer.
    pub text: Option<String>,
    /// The reasoning before it.
    pub reasoning: Option<String>,
    /// The reason why generation ended. Default: `stop`; `tool_calls` if there are any.
    pub finish: Option<String>,
    /// The functions that the model calls.
    pub tool_calls: Vec<ScriptedCall>,
    /// Tokens of the answer. Default: those of the text.
    pub output_tokens: Option<u32>,
    /// Tokens of the prompt, as a server counts them.
    pub prompt_tokens: Option<u32>,
    /// True if the request was cancelled by the agent; `text` is the part that had arrived.
    pub cancelled: bool,
    /// The class of a failure: `status`, `timeout`, `connect`, …
    pub fail: Option<String>,
    /// The message of the failure.
    pub message: Option<String>,
    /// The HTTP status of the failure.
    pub status: Option<u16>,
    /// The time in seconds after which the server asked for another attempt.
    pub retry_after: Option<f64>,
    /// The outcome of a tool run.
    pub tool: Option<ScriptedTool>,
    /// The tokens of its result. Default: those that the run states, or 100.
    pub result_tokens: Option<u32>,
}

/// The outcome of a tool run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedTool {
    /// It succeeded.
    Ok,
    /// It failed.
    Failed,
    /// It was cancelled before a server took it.
    Cancelled,
}

/// A function call of an answer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The id of the call.
    #[serde(default)]
    pub id: Option<String>,
    /// The name of the function.
    pub name: String,
    /// The arguments as JSON text. Default: `{}`.
    #[serde(default)]
    pub arguments: Option<String>,
}

impl ScriptedEnd {
    /// Returns true if only a request can end like this.
    pub(super) fn is_of_request(&self) -> bool {
        self.text.is_some()
            || self.reasoning.is_some()
            || self.finish.is_some()
            || !self.tool_calls.is_empty()
            || self.output_tokens.is_some()
            || self.prompt_tokens.is_some()
            || self.fail.is_some()
            || self.cancelled
    }

    /// Returns true if only a tool run can end like this.
    pub(super) fn is_of_tool(&self) -> bool {
        self.tool.is_some() || self.result_tokens.is_some()
    }

    /// Returns the answer, whose tokens `count` counts where the script does not state them.
    pub(super) fn response(&self, count: &dyn Fn(&str) -> u32) -> Response {
        let text = self.text.clone().unwrap_or_else(|| match self.cancelled {
            true => String::new(),
            false if self.tool_calls.is_empty() => "An answer.".to_owned(),
            false => String::new(),
        });
        let reasoning = self.reasoning.clone().unwrap_or_default();
        let finish = if self.cancelled {
            ""
        } else if self.tool_calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        let tokens = || count(&text).saturating_add(count(&reasoning));
        let output_tokens = self.output_tokens.unwrap_or_else(tokens);
        Response {
            finish_reason: self.finish.clone().unwrap_or_else(|| finish.to_owned()),
            tool_calls: (0..).zip(&self.tool_calls).map(tool_call).collect(),
            usage: self.prompt_tokens.map(|prompt| Usage {
                prompt,
                completion: output_tokens,
                cached: None,
                reasoning: None,
            }),
            output_tokens,
            text,
            reasoning,
            cancelled: self.cancelled,
            ..Response::default()
        }
    }

    /// Returns the failure that is scripted, if one is; `Err` names a class that does not exist.
    pub(super) fn failure(
        &self,
        session: SessionId,
        node: NodeId,
        at: Nanos,
    ) -> Option<Result<FailureReason, String>> {
        let name = self.fail.as_deref()?;
        let class = match failure_class(name) {
            Ok(class) => class,
            Err(why) => return Some(Err(why)),
        };
        let seconds = self
            .retry_after
            .filter(|seconds| (0.0..MAX_SECONDS).contains(seconds));
        Some(Ok(FailureReason {
            request: RequestId { session, node },
            class,
            status: self.status,
            retry_after: seconds.map(|seconds| (seconds * 1e9) as Nanos),
            message: self
                .message
                .clone()
                .unwrap_or_else(|| "scripted failure".to_owned()),
            at,
        }))
    }
}

/// Returns the class of failures with a name.
pub(crate) fn failure_class(name: &str) -> Result<ErrorClass, String> {
    const CLASSES: [ErrorClass; 9] = [
        ErrorClass::Connect,
        ErrorClass::Tls,
        ErrorClass::Timeout,
        ErrorClass::Status,
        ErrorClass::Protocol,
        ErrorClass::InStream,
        ErrorClass::Truncated,
        ErrorClass::Cancelled,
        ErrorClass::Codec,
    ];
    CLASSES
        .into_iter()
        .find(|class| class.name() == name)
        .ok_or_else(|| {
            let names = CLASSES.map(ErrorClass::name);
            match veeksha_slo::nearest(name, names) {
                Some(nearest) => format!("unknown class of failures `{name}`: did you mean {nearest}?"),
                None => format!(
                    "unknown class of failures `{name}`: expected one of {}",
                    names.join(", ")
                ),
            }
        })
}

fn tool_call((index, call): (u32, &ScriptedCall)) -> ToolCall {
    ToolCall {
        id: call.id.clone().unwrap_or_else(|| format!("call_{index}")),
        name: call.name.clone(),
        arguments: call.arguments.clone().unwrap_or_else(|| "{}".to_owned()),
    }
}
