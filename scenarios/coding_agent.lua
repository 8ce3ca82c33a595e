-- A coding agent with subagents and a pool of sandboxes. It plans; one subagent explores the code
-- while another one writes tests; both run commands in sandboxes, which wait for a free one. Then
-- two drafts of the patch race, because the user wants the first one, and it is tested.
--
--     veeksha-host simulate scenarios/coding_agent.lua
--     veeksha-host simulate scenarios/coding_agent.lua --tools.sandbox.servers 1

-- The same in every session and subagent: a prefix that a server can cache.
local instructions = synthetic(400)

-- Returns a subagent that works on a task for several turns. After each answer it runs a command
-- in a sandbox, whose output is part of the next request.
local function worker(name, turns, plan)
  return function(sub)
    local last, output = plan, "Begin."
    for _ = 1, turns do
      last = sub:request { user = output, history = last, output = 60, labels = { step = name } }
      if not last.ok then
        error(name .. " failed: " .. last.error.message)
      end
      output = { "Output:\n", result_of(sub:tool("sandbox", { labels = { step = name } })) }
    end
    return last
  end
end

local function coder(session)
  local plan = session:request {
    system = instructions,
    user = { "Plan this change:\n", synthetic(session.rng:int(200, 400)) },
    output = 120,
    labels = { step = "plan" },
  }
  if not plan.ok then
    return
  end

  -- Both start when the plan is there, each at its own pace.
  local explorer = session:spawn(worker("explore", session.rng:int(2, 4), plan))
  local tester = session:spawn(worker("test", 2, plan))
  local explored, tested = session:parallel(explorer, tester)

  -- The first patch wins; the other request is cancelled.
  local function draft(tokens)
    return {
      user = "Write the patch.",
      history = explored,
      after = tested,
      output = tokens,
      labels = { step = "patch" },
    }
  end
  local patch = session:race(draft(100), draft(150))

  -- The test suite takes longer than a command.
  local suite = session:tool("sandbox", { time = "1.5s", labels = { step = "suite" } })
  session:request {
    user = { "Summarize the result of the tests:\n", result_of(suite) },
    history = patch,
    output = 40,
    labels = { step = "summary" },
  }
end

return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = { type = "lua", agent = coder },

  -- Three sandboxes for all sessions. One that was idle for a minute must start again.
  tools = {
    sandbox = {
      servers = 3,
      time = { type = "lognormal", median = 0.15, sigma = 0.6 },
      cold_start = 0.5,
      keep_warm = 60,
      result_tokens = { type = "uniform", min = 100, max = 400 },
    },
  },

  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },

  client = { type = "openai_chat_completions", api_base = "sim://default", model = "sim" },

  runtime = { max_sessions = 8, benchmark_timeout = 120 },

  -- Results for each step and for each subagent.
  evaluators = { {
    type = "performance",
    group_by = { "step", "subagent" },
    slos = {
      'p90(tool_waiting_time{tool="sandbox"}) < 10s',
      "p90(session_makespan) < 60s",
    },
  } },

  -- The built-in simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
