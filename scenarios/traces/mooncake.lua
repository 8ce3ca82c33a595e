-- All that Mooncake's format has come to hold: prompts of hash blocks, a session of turns with a
-- reset of its prefix, an agent that forks, waits for tools and joins, and prompts in full.
-- veeksha-host run scenarios/traces/mooncake.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "mooncake.jsonl",
    wrap_mode = false,
    flavor = { type = "mooncake", block_size = 64, history = "fresh" },
  },

  traffic_scheduler = { type = "fixed_schedule", speedup = 10 },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
