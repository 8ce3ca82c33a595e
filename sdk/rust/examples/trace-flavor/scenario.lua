-- The log of a gateway, at its recorded times: veeksha-host run scenario.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "requests.csv",
    flavor = { type = "wasm", plugin = "build/gateway_log.wasm", config = { system_tokens = 50 } },
  },
  traffic_scheduler = { type = "fixed_schedule" },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { max_sessions = 8, benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },

  -- The simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
