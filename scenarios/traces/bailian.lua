-- Conversations that fork: the first goes on in two ways, one of them for a third turn. Every
-- prompt begins with the 16-token blocks that its hash ids have in common with others. veeksha-host
-- run scenarios/traces/bailian.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "bailian.jsonl",
    wrap_mode = false,
    flavor = { type = "bailian", block_size = 16 },
  },

  traffic_scheduler = { type = "fixed_schedule", speedup = 10 },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
