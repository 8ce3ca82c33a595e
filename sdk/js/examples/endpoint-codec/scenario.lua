-- A server whose API a plugin reads: veeksha-host run scenario.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "lua",
    sessions = function(index, rng)
      return { requests = { { user = synthetic(rng:int(50, 150)), output = 16 } } }
    end,
  },
  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 10 } },

  client = {
    type = "wasm",
    api_base = "sim://default",
    model = "sim",
    codec = { plugin = "build/chat_stream.wasm" },
  },
  runtime = { max_sessions = 20, benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },

  -- The simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
