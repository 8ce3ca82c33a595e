-- An API described by a template: the JSON of a request, and the places of things in the events of
-- an answer. The server here happens to be the simulated engine, whose API has a built-in type as
-- well.
return {
  session_generator = {
    type = "synthetic",
    session_graph = { type = "single_request" },
    channels = { { type = "text", body_length_generator = { type = "uniform", min = 20, max = 60 } } },
    output_spec = { text = { output_length_generator = { type = "fixed", value = 16 } } },
  },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },
  client = {
    type = "template",
    api_base = "sim://default",
    address_append_value = "chat/completions",
    template = {
      request = {
        model = "{{model}}",
        messages = { { role = "user", content = "{{prompt}}" } },
        max_tokens = "{{max_tokens}}",
        ignore_eos = "{{ignore_eos}}",
        stream = true,
        stream_options = { include_usage = true },
      },
      answer = {
        text = "/choices/*/delta/content",
        finish_reason = "/choices/*/finish_reason",
        prompt_tokens = "/usage/prompt_tokens",
        output_tokens = "/usage/completion_tokens",
        error = "/error",
        done = "[DONE]",
      },
    },
  },
  runtime = { max_sessions = 20, benchmark_timeout = 30 },
  -- The simulator shares this machine with the client: thresholds for a demonstration. Against a
  -- real server the default thresholds apply.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
