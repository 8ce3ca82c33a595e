"""Plugins for veeksha-host in Python.

A plugin is a class of one of eight kinds, registered with `@plugin`:

    from veeksha import Agent, Request, Response, Step, plugin, synthetic

    @plugin
    class Persistent(Agent):
        def start(self) -> Step:
            return Step.send(Request(0).user(synthetic(self.index, 200)))

        def answered(self, response: Response) -> Step:
            return Step.end()

`veeksha-host plugin new` makes a project, `veeksha-host plugin build` a component of it. The
modules `veeksha.config`, `veeksha.log`, `veeksha.tokens` and `veeksha.blobs` have further
functions.
"""

from ._numbers import milliseconds, seconds
from .agent import Agent, Opening, Step
from .answer import (
    Failure,
    LogProbabilities,
    Response,
    TokenProbabilities,
    ToolOutcome,
    ToolResult,
    Usage,
)
from .arrivals import ArrivalProcess
from .checks import RequestCheck, Results, SloCheck, Stats, Verdict, Window
from .codec import Endpoint, EndpointCodec, Framing, Parts
from .completion import ChunkKind, Completion, ReplayedRequest, Status
from .config import NoConfig, Range
from .draws import Draws, Random
from .error import Error
from .flavor import (
    Cell,
    Column,
    Group,
    Layout,
    MostFrequent,
    Row,
    TimeUnit,
    Trace,
    TraceFlavor,
    blocks,
    seed_of,
)
from .generator import SessionGenerator
from .graph import (
    Answer,
    Cancellation,
    Edge,
    Guarantees,
    HistoryMode,
    Output,
    Recording,
    Request,
    Session,
    ToolRun,
    Trigger,
)
from .message import (
    AutomaticToolChoice,
    DefinedTools,
    FunctionToolChoice,
    Message,
    NoToolChoice,
    Reasoning,
    RequiredToolChoice,
    Role,
    Seed,
    Segment,
    ToolCall,
    VerbatimTools,
    audio,
    image,
    result_of,
    synthetic,
    synthetic_tools,
    text,
    token_ids,
    video,
)
from .metric import Better, Definition, Metric, Sample, Samples
from ._plugin import Plugin, plugin

__all__ = [
    "Agent",
    "Answer",
    "ArrivalProcess",
    "AutomaticToolChoice",
    "Better",
    "Cancellation",
    "Cell",
    "ChunkKind",
    "Column",
    "Completion",
    "DefinedTools",
    "Definition",
    "Draws",
    "Edge",
    "Endpoint",
    "EndpointCodec",
    "Error",
    "Failure",
    "Framing",
    "FunctionToolChoice",
    "Group",
    "Guarantees",
    "HistoryMode",
    "Layout",
    "LogProbabilities",
    "Message",
    "Metric",
    "MostFrequent",
    "NoConfig",
    "NoToolChoice",
    "Opening",
    "Output",
    "Parts",
    "Plugin",
    "Random",
    "Range",
    "Reasoning",
    "Recording",
    "ReplayedRequest",
    "Request",
    "RequestCheck",
    "RequiredToolChoice",
    "Response",
    "Results",
    "Role",
    "Row",
    "Sample",
    "Samples",
    "Seed",
    "Segment",
    "Session",
    "SessionGenerator",
    "SloCheck",
    "Stats",
    "Status",
    "Step",
    "TimeUnit",
    "TokenProbabilities",
    "ToolCall",
    "ToolOutcome",
    "ToolResult",
    "ToolRun",
    "Trace",
    "TraceFlavor",
    "Trigger",
    "Usage",
    "Verdict",
    "VerbatimTools",
    "Window",
    "audio",
    "blocks",
    "image",
    "milliseconds",
    "plugin",
    "result_of",
    "seconds",
    "seed_of",
    "synthetic",
    "synthetic_tools",
    "text",
    "token_ids",
    "video",
]
