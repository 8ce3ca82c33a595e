-- Questions about documents. The two documents with the most questions are kept, and the server
-- sees each of them once before the run begins. veeksha-host run scenarios/traces/rag.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "rag.jsonl",
    wrap_mode = false,
    flavor = { type = "rag", num_documents = 2, warmup = true },
  },

  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 10 } },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
