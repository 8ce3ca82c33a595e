-- Request bodies as another run recorded them, sent again. The model is that of this run;
--   everything else is as it was. veeksha-host run scenarios/traces/inputs_json.lua
return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "trace",
    trace_file = "inputs_json.json",
    wrap_mode = false,
    flavor = { type = "inputs_json" },
  },

  traffic_scheduler = { type = "rate", interval_generator = { type = "poisson", arrival_rate = 10 } },
  client = { type = "openai_chat_completions", api_base = "sim://default" },
  runtime = { benchmark_timeout = 60 },
  evaluators = { { type = "performance" } },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
