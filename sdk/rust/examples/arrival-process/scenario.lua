-- A rate that rises and falls: veeksha-host run scenario.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "lua",
    sessions = function(index, rng)
      return { requests = { { user = synthetic(rng:int(50, 150)), output = 16 } } }
    end,
  },
  traffic_scheduler = {
    type = "arrival_process",
    process = {
      type = "wasm",
      plugin = "build/rush_hour.wasm",
      config = { quiet_rate = 5, busy_rate = 40, period_seconds = 2 },
    },
  },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { max_sessions = 40, benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },

  -- The simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
