-- Two coding agents at a time. The first starts two subagents: one reports back before its next
-- request, the other before the one after that. veeksha-host run scenarios/traces/weka.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "weka.json",
    wrap_mode = false,
    flavor = { type = "weka" },
  },

  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 2, rampup_seconds = 0 },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
