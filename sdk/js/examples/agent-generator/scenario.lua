return {
  seed = 42,
  session_generator = { type = "wasm", plugin = "build/tool_loop.wasm", config = { turns = 6 } },
  tools = { sandbox = { servers = 2, time = { type = "uniform", min = 0.2, max = 1.0 }, result_tokens = { type = "uniform", min = 50, max = 200 } } },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 40 },
}
