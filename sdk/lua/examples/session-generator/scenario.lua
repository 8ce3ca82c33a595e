-- Runs the plugin against the built-in simulator: veeksha-host run scenario.lua
local plugin = require("src/plugin")

---@type veeksha.Scenario
return {
  session_generator = { type = "lua", sessions = plugin { document_tokens = 400 } },
  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 5 } },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 20 },
}
