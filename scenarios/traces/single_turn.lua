-- Single requests at their recorded times: with a system message, with an image, with audio; the
-- two of session `notes` one after the other. veeksha-host run scenarios/traces/single_turn.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "single_turn.jsonl",
    wrap_mode = false,
    flavor = { type = "single_turn" },
  },

  traffic_scheduler = { type = "fixed_schedule" },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
