-- An agent whose requests form a graph, and a chat without contexts, with their think times. The
-- text behind the first page of each conversation comes from a file. veeksha-host run
-- scenarios/traces/timed_synthetic_session.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "timed_synthetic_session.jsonl",
    wrap_mode = false,
    flavor = {
      type = "timed_synthetic_session",
      page_size = 16,
      corpus_file = "timed_synthetic_session.txt",
    },
  },

  traffic_scheduler = { type = "rate", interval_generator = { type = "fixed", interval = 0.1 } },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
