-- Runs the plugin against the built-in simulator: veeksha-host run scenario.lua
local plugin = require("src/plugin")

---@type veeksha.Scenario
return {
  session_generator = {
    type = "lua",
    sessions = function(index, rng)
      return { requests = { { user = synthetic(100), output = 32 } } }
    end,
  },
  traffic_scheduler = {
    type = "arrival_process",
    process = { type = "lua", arrivals = plugin { acceleration = 0.5 } },
  },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 20 },
}
