-- Goodput by a plugin: veeksha-host run scenario.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "lua",
    sessions = function(index, rng)
      return {
        requests = {
          {
            user = synthetic(rng:int(50, 150)),
            output = 16,
            labels = { tier = index % 2 == 0 and "paid" or "free" },
          },
        },
      }
    end,
  },
  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 10 } },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { max_sessions = 20, benchmark_timeout = 60 },

  evaluators = {
    { type = "performance" },
    { type = "wasm", plugin = "build/prompt_answers.wasm", config = { paid_within_ms = 300 } },
  },

  -- The simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
