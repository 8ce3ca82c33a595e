-- Runs the plugin against the built-in simulator: veeksha-host run scenario.lua
local plugin = require("src/plugin")

---@type veeksha.Scenario
return {
  session_generator = { type = "trace", trace_file = "log.csv", flavor = plugin },
  traffic_scheduler = { type = "fixed_schedule" },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 20 },
}
