-- Conversations with system messages, a tool call and an image. Later turns continue the recorded
-- answers where there are any: the result of a tool belongs to the call that was recorded.
-- veeksha-host run scenarios/traces/multi_turn.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "multi_turn.jsonl",
    wrap_mode = false,
    flavor = { type = "multi_turn", history = "recorded" },
  },

  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 10 } },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
