-- Short questions about one long document: veeksha-host run scenario.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "wasm",
    plugin = "build/shared_document.wasm",
    config = { document_tokens = 2000, questions = 2 },
  },
  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 10 } },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { max_sessions = 20, benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },

  -- The simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
