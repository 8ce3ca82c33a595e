-- Conversations in two languages, a hundred times as fast as recorded. What is in another language
-- is left out, and listed. Think times are not made shorter by `speedup`: here no think time is
-- longer than a fifth of a second. veeksha-host run scenarios/traces/wildchat.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "wildchat.jsonl",
    wrap_mode = false,
    on_bad_row = "skip",
    flavor = {
      type = "wildchat",
      languages = { "English", "German" },
      max_think_time_s = 0.2,
      recorded_tokens_per_s = 40,
    },
  },

  traffic_scheduler = { type = "fixed_schedule", speedup = 100 },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
