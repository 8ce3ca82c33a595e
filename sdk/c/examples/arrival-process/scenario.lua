-- Runs the plugin against the built-in simulator: veeksha-host run scenario.lua
return {
  session_generator = {
    type = "lua",
    sessions = function(index, rng)
      return { requests = { { user = synthetic(100), output = 32 } } }
    end,
  },
  traffic_scheduler = {
    type = "arrival_process",
    process = { type = "wasm", plugin = "build/rising_rate.wasm", config = { acceleration = 0.5 } },
  },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 20 },
}
