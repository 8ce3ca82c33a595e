-- Conversations that begin alike where their hash ids are equal: s1 and s4 share four blocks of 64
--   tokens, all share the first. veeksha-host run scenarios/traces/shared_prefix.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "shared_prefix.jsonl",
    wrap_mode = false,
    flavor = { type = "shared_prefix", block_size = 64 },
  },

  traffic_scheduler = { type = "rate", interval_generator = { type = "fixed", interval = 0.1 } },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
