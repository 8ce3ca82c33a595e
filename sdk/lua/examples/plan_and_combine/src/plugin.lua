-- An agent that plans, runs two tools at once, combines their results, and asks again with twice
-- the length while its answer is cut off. It is written in every language of the SDKs
-- (sdk/README.md), and makes the same sessions in each.

---@param config? { plan_tokens?: integer, retries?: integer }
return function(config)
  local plan_tokens = config and config.plan_tokens or 200
  local retries = config and config.retries or 2

  ---@param session veeksha.AgentSession
  return function(session)
    session:label("agent", "plan_and_combine")
    local task = plan_tokens + session.rng:stream("plan"):word() % 100
    local plan = session:request {
      system = synthetic(300, 1),
      user = { "Task:\n", synthetic(task, session.index) },
      output = 120,
    }
    if not plan.ok then
      return
    end

    local search, sandbox = session:parallel(
      { tool = "search" },
      { tool = "sandbox", time = "250ms", result_tokens = 150 })

    local output = 200
    for attempt = 1, retries + 1 do
      local answer = session:request {
        history = plan,
        user = { "Results:\n", result_of(search), result_of(sandbox), "\nCombine them." },
        output = output,
        labels = { attempt = attempt },
      }
      if not answer.ok or answer.finish_reason ~= "length" then
        return
      end
      output *= 2
    end
  end
end
