-- Conversations and single calls, sixty times as fast as recorded. The call of row 5 failed then:
-- it is left out, and listed. Think times are not made shorter by `speedup`, so this run leaves
-- them out. veeksha-host run scenarios/traces/burstgpt.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "burstgpt.csv",
    wrap_mode = false,
    on_bad_row = "skip",
    flavor = { type = "burstgpt", history = "live", think_time = "none" },
  },

  traffic_scheduler = { type = "fixed_schedule", speedup = 60 },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
