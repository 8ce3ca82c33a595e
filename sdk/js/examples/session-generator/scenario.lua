return {
  seed = 42,
  session_generator = { type = "wasm", plugin = "build/shared_document.wasm", config = { questions = 4 } },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 40 },
}
