-- An agent, written as straight-line code: it plans, calls two tools at once, combines what they
-- found, and decides on what the model said. Each session runs `researcher` from its first line;
-- `session:request` waits for the answer.
--
--     veeksha-host run scenarios/agent.lua
--     veeksha-host run scenarios/agent.lua --client.model my-model \
--       --client.api_base http://localhost:8000/v1

-- Text made up here, at the top level, is the same in every session: a prefix that a server can
-- cache.
local instructions = synthetic(300)

local function researcher(session)
  -- Each session draws from a separate stream, so that session 7 is the same in every run with
  -- this seed.
  local rng = session.rng

  -- Plan. 400 tokens of text that no other session has; an answer of at most 120 tokens.
  local plan = session:request {
    system = instructions,
    user = { "Plan the research on this question:\n", synthetic(rng:int(200, 400)) },
    output = 120,
    labels = { step = "plan" },
  }

  -- A failure is an answer too: `ok` is false, and `error` is the reason. There is nothing to
  -- research without a plan.
  if not plan.ok then
    log.warn("session", session.index, "has no plan:", plan.error.message)
    return
  end

  -- Two tools at once. Both continue the plan's conversation; the database takes 350 ms to come
  -- back with its rows. The next line runs when both answers are there.
  local found, rows = session:parallel(
    { user = tool_result("search", 600), history = plan, output = 60, labels = { step = "search" } },
    { user = tool_result("database", 300), history = plan, output = 60, wait = "350ms", labels = { step = "database" } }
  )

  -- Combine: continue the search's conversation, after the database's answer as well.
  local report = session:request {
    user = "Combine the search with the rows of the database into a short report.",
    history = found,
    after = { rows },
    output = 200,
    labels = { step = "combine" },
  }

  -- Branch: a report that was cut off at its length gets a second half, as long as the first. The
  -- user reads for a moment before asking for it.
  if report.finish_reason == "length" then
    session:sleep(rng:exponential(0.2))
    session:request {
      user = "Go on.",
      history = report,
      output = 200,
      labels = { step = "continue" },
    }
  end
end

return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = { type = "lua", agent = researcher },

  -- Four agents at work at any time: a new one begins when one ends.
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },

  client = { type = "openai_chat_completions", api_base = "sim://default", model = "sim" },

  runtime = { max_sessions = 20, benchmark_timeout = 120 },

  evaluators = { { type = "performance" } },

  -- The built-in simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
