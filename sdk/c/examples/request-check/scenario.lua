-- Runs the plugin against the built-in simulator: veeksha-host run scenario.lua
return {
  session_generator = {
    type = "lua",
    sessions = function(index, rng)
      return {
        requests = { { user = synthetic(rng:int(50, 150)), output = 32 } },
      }
    end,
  },
  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 5 } },
  evaluators = { { type = "wasm", plugin = "build/no_long_pause.wasm", config = { longest_pause = 0.2 } } },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 20 },
}
