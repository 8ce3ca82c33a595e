-- Twenty requests, each of a question, a passage and a picture drawn at random. Pools have no end:
--   the run reports how many. veeksha-host run scenarios/traces/random_pool.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "random_pool",
    flavor = { type = "random_pool", output_tokens = 24 },
  },

  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 40 } },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { max_sessions = 20, benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
