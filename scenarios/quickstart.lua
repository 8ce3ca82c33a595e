-- The first run: a WebAssembly component plans chat sessions, the host sends them to an engine that
-- it simulates itself. To measure a real server instead:
--     veeksha-host run scenarios/quickstart.lua --client.api_base http://localhost:8000/v1
return {
  seed = 42,
  output_dir = "benchmark_output",

  -- What is sent: conversations of two or three turns. The generator is a component shipped with
  -- the host.
  session_generator = {
    type = "synthetic",
    session_graph = {
      type = "linear",
      num_request_generator = { type = "uniform", min = 2, max = 3 },
      request_wait_generator = { type = "poisson", arrival_rate = 10 }, -- think time: 0.1 s on average
    },
    channels = {
      { type = "text", body_length_generator = { type = "uniform", min = 50, max = 150 }, shared_prefix_ratio = 0.3 },
    },
    output_spec = { text = { output_length_generator = { type = "uniform", min = 16, max = 48 } } },
  },

  -- When: ten new sessions a second, Poisson arrivals.
  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 10 } },

  -- Where: the built-in engine, over real sockets.
  client = { type = "openai_chat_completions", api_base = "sim://default" },

  -- How long.
  runtime = { max_sessions = 30, benchmark_timeout = 60 },

  -- What "good" means: times in seconds.
  evaluators = {
    {
      type = "performance",
      slos = {
        { type = "constant", metric = "ttfc", percentile = 0.9, value = 0.5 },
        { type = "constant", metric = "tbc", percentile = 0.9, value = 0.05 },
      },
    },
  },

  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
