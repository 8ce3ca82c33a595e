-- Runs the plugin against the built-in simulator: veeksha-host run scenario.lua
return {
  session_generator = {
    type = "lua",
    sessions = function(index, rng)
      return { requests = { { user = synthetic(rng:int(50, 150)), output = 16 } } }
    end,
  },
  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 10 } },
  client = { type = "wasm", api_base = "sim://default", model = "sim", codec = { plugin = "build/chat_text.wasm" } },
  runtime = { max_sessions = 20 },
}
