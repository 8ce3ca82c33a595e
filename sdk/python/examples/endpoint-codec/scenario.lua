return {
  seed = 42,
  -- Sessions of the host: two tiers of users.
  session_generator = {
    type = "lua",
    sessions = function(index, rng)
      return {
        requests = { { user = synthetic(rng:int(50, 150)), output = 32 } },
        labels = { tier = if index % 2 == 0 then "paid" else "free" },
      }
    end,
  },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },
  -- The address of a server with this API; the built-in simulator does not speak it.
  client = {
    type = "wasm",
    api_base = "http://localhost:8000",
    model = "words",
    codec = { plugin = "build/word_lines.wasm" },
  },
  runtime = { max_sessions = 40 },
}
