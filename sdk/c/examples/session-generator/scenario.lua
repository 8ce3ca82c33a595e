-- Runs the plugin against the built-in simulator: veeksha-host run scenario.lua
return {
  session_generator = {
    type = "wasm",
    plugin = "build/shared_document.wasm",
    config = { document_tokens = 400 },
  },
  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 5 } },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 20 },
}
