-- Best of four: the same question is sampled four times, and the first complete answer wins. The
-- client cancels the others by closing their connections, so that the server can work on other
-- requests; what had arrived of them is in the record, and they are neither answers nor failures.
--
--     veeksha-host run scenarios/best_of_n.lua
--     veeksha-host run scenarios/best_of_n.lua --client.model my-model \
--       --client.api_base http://localhost:8000/v1

local SAMPLES = 4

-- The prompt that all sessions share: a prefix that a server can cache.
local instructions = synthetic(200)

local function best_of_n(index, rng)
  local question = { synthetic(rng:int(100, 300)), "\nAnswer step by step." }
  local requests, samples = {}, {}
  for sample = 1, SAMPLES do
    -- Each sample is cancelled by the end of any other one.
    local others = {}
    for other = 1, SAMPLES do
      if other ~= sample then table.insert(others, other) end
    end
    table.insert(samples, sample)
    requests[sample] = {
      system = instructions,
      user = question,
      output = { tokens = rng:int(40, 200), exact = true },
      cancel = others,
      labels = { step = "sample" },
    }
  end
  -- When all samples have ended, with an answer or by their cancellation, the winner is judged. The
  -- judge has little time: its answer is cut after 24 chunks, or after two seconds.
  requests[SAMPLES + 1] = {
    user = { "Is this answer correct? ", synthetic(120) },
    after = samples,
    output = 100,
    cancel = { { chunks = 24 }, { delay = "2s" } },
    labels = { step = "judge" },
  }
  return { requests = requests }
end

return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = { type = "lua", sessions = best_of_n },

  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 3, rampup_seconds = 0 },

  client = { type = "openai_chat_completions", api_base = "sim://default", model = "sim" },

  runtime = { max_sessions = 12, benchmark_timeout = 120 },

  evaluators = { { type = "performance" } },

  -- The built-in simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
