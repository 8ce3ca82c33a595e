-- Deep research: a session plans, searches the web several times per round, runs a script in a
-- sandbox, and writes a report. Searches are limited to 20 per second for all sessions, and four
-- sandboxes serve everyone, so sessions wait for each other's tools.
--
--     veeksha-host simulate scenarios/research.lua
--     veeksha-host evaluate benchmark_output/latest --what-if tool_waiting=0

local instructions = synthetic(400)

local rounds = 2
local searches = 4

-- Returns the requests and tool runs of a session. Each has a number, in the order of the list, by
-- which later ones name it.
local function research(index, rng)
  local nodes = {}
  local function add(node)
    table.insert(nodes, node)
    return #nodes
  end

  local last = add {
    system = instructions,
    user = { "Plan the research on this question:\n", synthetic(rng:int(200, 400)) },
    output = 80,
    labels = { step = "plan" },
  }

  for _ = 1, rounds do
    -- All searches of a round are called when the answer is complete. The next request waits for
    -- the last one, and sends all results.
    local after, results = { last }, { "Results:\n" }
    for _ = 1, searches do
      local search = add { tool = "search", after = last }
      table.insert(after, search)
      table.insert(results, result_of(search))
    end
    last = add {
      user = results,
      history = last,
      after = after,
      output = 60,
      labels = { step = "read" },
    }
  end

  -- A script over the findings, whose duration is known from its input.
  local script = add { tool = "sandbox", after = last, time = rng:exponential(0.4), result_tokens = 250 }
  add {
    user = { "Write the report. The script printed:\n", result_of(script) },
    history = last,
    after = script,
    output = 150,
    labels = { step = "report" },
  }
  return { requests = nodes }
end

return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = { type = "lua", sessions = research },

  tools = {
    search = {
      rate_limit = "20/s",
      time = { type = "lognormal", median = 0.2, sigma = 0.5 },
      result_tokens = { type = "uniform", min = 100, max = 400 },
      failure_rate = 0.02,
    },
    -- A sandbox that was idle for five seconds must start again.
    sandbox = { servers = 4, cold_start = 0.8, keep_warm = 5 },
  },

  -- Eight sessions at any time.
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 8, rampup_seconds = 0 },

  client = { type = "openai_chat_completions", api_base = "sim://default", model = "sim" },

  runtime = { max_sessions = 24, benchmark_timeout = 120 },

  evaluators = { {
    type = "performance",
    group_by = { "step" },
    slos = {
      'p99(tool_waiting_time{tool="search"}) < 10s',
      "p90(session_makespan) < 60s",
    },
  } },

  -- The built-in simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
