return {
  seed = 42,
  session_generator = { type = "wasm", plugin = "build/plan_and_combine.wasm", config = { plan_tokens = 150 } },
  tools = {
    search = { servers = 4, time = { type = "uniform", min = 0.1, max = 0.4 }, result_tokens = { type = "constant", value = 60 } },
    sandbox = { servers = 2, time = { type = "uniform", min = 0.2, max = 1.0 }, result_tokens = { type = "constant", value = 60 } },
  },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 40 },
}
