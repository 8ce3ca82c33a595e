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
  traffic_scheduler = {
    type = "arrival_process",
    process = { type = "wasm", plugin = "build/daily_wave.wasm", config = { highest = 8 } },
  },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 40 },
}
