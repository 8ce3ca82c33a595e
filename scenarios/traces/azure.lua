-- Requests with the lengths and the arrivals of an Azure trace, ten times as fast as recorded.
--   veeksha-host run scenarios/traces/azure.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "azure.csv",
    wrap_mode = false,
    flavor = { type = "azure" },
  },

  traffic_scheduler = { type = "fixed_schedule", speedup = 10 },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
