-- Runs the plugin against the built-in simulator: veeksha-host run scenario.lua
local plugin = require("src/plugin")

---@type veeksha.Scenario
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
  evaluators = { plugin { longest_pause = 0.2 } },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 20 },
}
