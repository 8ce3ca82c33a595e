"""The classes of this package that represent the types of the contract.

The runtime of components makes and reads values by the classes that it finds in its generated
modules. They are replaced by those of this package, so that nothing is converted. The names are
those of the generated modules; `tests/test_contract.py` compares them with the contract.
"""

from __future__ import annotations

from typing import Any

from . import agent, answer, checks, codec, completion, error, flavor, graph, log, message, metric

_TYPES: dict[str, Any] = {
    "Seed": message.Seed,
    "SyntheticText": message.SyntheticText,
    "MediaKind": message.MediaKind,
    "Media": message.Media,
    "Segment_Text": message.TextSegment,
    "Segment_Synthetic": message.SyntheticSegment,
    "Segment_Media": message.MediaSegment,
    "Segment_TokenIds": message.TokenIdsSegment,
    "Segment_ResultOf": message.ResultSegment,
    "Role": message.Role,
    "ToolCall": message.ToolCall,
    "Reasoning": message.Reasoning,
    "Message": message.Message,
    "SyntheticTools": message.SyntheticTools,
    "Tools_Definitions": message.DefinedTools,
    "Tools_Verbatim": message.VerbatimTools,
    "Tools_Synthetic": message.GeneratedTools,
    "ToolChoice_Automatic": message.AutomaticToolChoice,
    "ToolChoice_None_": message.NoToolChoice,
    "ToolChoice_Required": message.RequiredToolChoice,
    "ToolChoice_Function": message.FunctionToolChoice,
    "AnswerForm": graph.AnswerForm,
    "Output": graph.Output,
    "HistoryMode": graph.HistoryMode,
    "Answer": graph.Answer,
    "Recording": graph.Recording,
    "Trigger": graph.Trigger,
    "Edge": graph.Edge,
    "Cancellation": graph.Cancellation,
    "Request": graph.Request,
    "ToolRun": graph.ToolRun,
    "Session": graph.Session,
    "Guarantees": graph.Guarantees,
    "Usage": answer.Usage,
    "TokenProbabilities": answer.TokenProbabilities,
    "LogProbabilities": answer.LogProbabilities,
    "Response": answer.Response,
    "ToolOutcome": answer.ToolOutcome,
    "ToolResult": answer.ToolResult,
    "Failure": answer.Failure,
    "Error": error.Error,
}

#: The classes, by generated module and generated name.
CLASSES: dict[str, dict[str, Any]] = {
    "wit_world.imports.types": _TYPES,
    "wit_world.imports.log": {"Level": log.Level},
    "wit_world.imports.records": {
        "Status": completion.Status,
        "FailedRequest": completion.FailedRequest,
        "NewConnection": completion.NewConnection,
        "ReplayedRequest": completion.ReplayedRequest,
    },
    "wit_world.imports.results": {"Stats": checks.Stats, "Window": checks.Window},
    "wit_world.exports.agent_generator": {"Step": agent.Step, "Opening": agent.Opening},
    "wit_world.exports.trace_flavor": {
        "Cell": flavor.Cell,
        "Column": flavor.Column,
        "Tree": flavor.Tree,
        "Grouping_Row": flavor.GroupingRow,
        "Grouping_Column": flavor.GroupingColumn,
        "Grouping_Tree": flavor.GroupingTree,
        "Grouping_Pools": flavor.GroupingPools,
        "TimeUnit": flavor.TimeUnit,
        "Arrival": flavor.Arrival,
        "MostFrequent": flavor.MostFrequent,
        "Layout": flavor.Layout,
    },
    "wit_world.exports.endpoint_codec": {
        "Framing": codec.Framing,
        "Endpoint": codec.Endpoint,
        "ToolPiece": codec.ToolPiece,
        "Refusal": codec.Refusal,
        "Part_Role": codec.RolePart,
        "Part_Reasoning": codec.ReasoningPart,
        "Part_Content": codec.ContentPart,
        "Part_Tool": codec.ToolPart,
        "Part_Finish": codec.FinishPart,
        "Part_Usage": codec.UsagePart,
        "Part_Signature": codec.SignaturePart,
        "Part_LogProbabilities": codec.LogProbabilitiesPart,
        "Part_ResponseId": codec.ResponseIdPart,
        "Part_Done": codec.DonePart,
        "Part_Comment": codec.CommentPart,
        "Part_Error": codec.ErrorPart,
        "Parts": codec.Parts,
    },
    "wit_world.exports.metric": {
        "Better": metric.Better,
        "Definition": metric.Definition,
        "Sample": metric.Sample,
    },
    "wit_world.exports.slo_check": {"Verdict": checks.Verdict},
}
