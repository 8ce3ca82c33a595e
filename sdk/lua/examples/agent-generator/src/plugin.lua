-- An agent that asks again, in the same conversation, until an answer is short.

---@param config { turns: integer }
return function(config)
  ---@param session veeksha.AgentSession
  return function(session)
    local answer = session:request { user = synthetic(200), output = 400 }
    for _ = 2, config.turns do
      if not answer.ok or answer.finish_reason == "stop" then
        return
      end
      answer = session:request { history = answer, user = "Shorter, please.", output = 400 }
    end
  end
end
