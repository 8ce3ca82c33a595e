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
  evaluators = { { type = "wasm", plugin = "build/quick_for_paid.wasm", config = { first_chunk_ms = 200 } } },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 40 },
}
