-- A log of requests, sent when they were sent then: lengths and times are recorded, the text is
--   made up. veeksha-host run scenarios/traces/request_log.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "request_log.csv",
    wrap_mode = false,
    flavor = { type = "request_log" },
  },

  -- The trace's own arrivals. With `speedup = 2` the same second of traffic takes half a second.
  traffic_scheduler = { type = "fixed_schedule" },

  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
