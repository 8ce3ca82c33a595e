-- Conversations, sent turn by turn with the model's real answers. The third is too short for the
-- limits of vLLM's benchmark: it is left out, and listed. veeksha-host run
-- scenarios/traces/sharegpt.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "sharegpt.json",
    wrap_mode = false,
    on_bad_row = "skip",
    flavor = {
      type = "sharegpt",
      min_prompt_tokens = 4,
      max_prompt_tokens = 1024,
      min_output_tokens = 4,
      max_total_tokens = 2048,
    },
  },

  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 10 } },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
