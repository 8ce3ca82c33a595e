-- A coding agent with two concurrent subagents: it plans, one subagent explores the code while the
-- other one writes tests, and it combines their work. Two drafts of the patch race, because the
-- user wants the first one.
--
--     veeksha-host run scenarios/subagents.lua

-- The same in every session and subagent: a prefix that a server can cache.
local instructions = synthetic(400)

-- Returns a subagent that works on a task for several turns. After each answer a tool runs, so the
-- next request comes later.
local function worker(name, turns, plan)
  return function(sub)
    local last = plan
    for _ = 1, turns do
      last = sub:request {
        user = tool_result(name, sub.rng:int(100, 400)),
        history = last,
        output = 60,
        labels = { step = name },
      }
      if not last.ok then
        error(name .. " failed: " .. last.error.message)
      end
      sub:sleep(sub.rng:exponential(0.05))
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
  local patch, number = session:race(draft(100), draft(150))
  log.debug("session", session.index, "takes draft", number, "of", patch.output_tokens, "tokens")
end

return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = { type = "lua", agent = coder },

  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },

  client = { type = "openai_chat_completions", api_base = "sim://default", model = "sim" },

  runtime = { max_sessions = 12, benchmark_timeout = 120 },

  -- Results for each step and for each subagent.
  evaluators = { { type = "performance", group_by = { "step", "subagent" } } },
}
