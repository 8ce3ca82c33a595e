-- Drafts, reviews and revisions: veeksha-host run scenario.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "wasm",
    plugin = "build/draft_and_review.wasm",
    config = { draft_tokens = 120, revisions = 2 },
  },
  -- Four agents at any time: a new one begins when one ends.
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { max_sessions = 12, benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },

  -- The simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
