-- Rollouts for reinforcement learning: groups of samples of one prompt. A training step ends with
-- the slowest sample of its groups, so the tail of the answers' lengths decides its duration.
--
--     veeksha-host simulate scenarios/rollouts.lua
--     veeksha-host evaluate benchmark_output/latest --what-if ttfc=0.5

local SAMPLES = 8

-- A session is one group: the same prompt, a temperature for each sample, answers of very
-- different lengths. A server that caches prefixes computes the prompt again for samples that
-- arrive before its first computation has ended.
local function group(index, rng)
  local prompt = { "Solve this:\n", synthetic(rng:int(150, 300)) }
  local requests = {}
  for sample = 1, SAMPLES do
    requests[sample] = {
      user = prompt,
      output = { tokens = math.min(10 + math.floor(rng:exponential(60)), 400), exact = true },
      body = { temperature = 0.6 + 0.1 * sample, seed = index * SAMPLES + sample },
    }
  end
  return { requests = requests }
end

-- The latency of a group's slowest sample, divided by the mean of the group: 1 if none is late.
-- All that is above 1 is time in which the other slots of the step are idle.
local groups = {}
local function straggler_ratio(request)
  local known = groups[request.session] or { count = 0, sum = 0, slowest = 0 }
  local latency = request.end_to_end_latency
  if latency == nil then
    return nil
  end
  known.count += 1
  known.sum += latency
  known.slowest = math.max(known.slowest, latency)
  groups[request.session] = known
  if known.count == SAMPLES then
    groups[request.session] = nil
    return known.slowest / (known.sum / SAMPLES)
  end
  return nil
end

return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = { type = "lua", sessions = group },

  -- Four groups at any time: the batch of a step.
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },

  client = { type = "openai_chat_completions", api_base = "sim://default", model = "sim" },

  runtime = { max_sessions = 16, benchmark_timeout = 120 },

  -- `session_makespan` is the duration of a group.
  evaluators = {
    { type = "performance", slos = { "p90(session_makespan) < 60s", "p90(straggler_ratio) < 8" } },
    {
      type = "lua",
      name = "rollouts",
      metrics = {
        straggler_ratio = {
          better = "less",
          summary = "latency of a group's slowest sample, divided by the mean of the group",
          observe = straggler_ratio,
        },
      },
    },
  },

  -- The built-in simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
