-- Runs the plugin against the built-in simulator: veeksha-host run scenario.lua
return {
  session_generator = {
    type = "trace",
    trace_file = "log.csv",
    flavor = { type = "wasm", plugin = "build/token_log.wasm" },
  },
  traffic_scheduler = { type = "fixed_schedule" },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 20 },
}
