-- Runs the plugin against the built-in simulator: veeksha-host run scenario.lua
return {
  session_generator = {
    type = "wasm",
    plugin = "build/plan_and_combine.wasm",
    config = { plan_tokens = 200, retries = 2 },
  },
  tools = {
    search = { servers = 4, time = { type = "exponential", mean = 0.2 }, result_tokens = { type = "constant", value = 400 } },
    sandbox = { servers = 2, time = { type = "constant", value = 1 } },
  },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 20 },
}
