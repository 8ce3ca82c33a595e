return {
  seed = 42,
  session_generator = {
    type = "trace",
    trace_file = "gateway.jsonl",
    flavor = { type = "wasm", plugin = "build/gateway_log.wasm" },
  },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 6 },
}
