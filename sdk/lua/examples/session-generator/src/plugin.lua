-- Questions about one long document: a shared prefix and a short question.

---@param config { document_tokens: integer }
return function(config)
  local document = synthetic(config.document_tokens, "document")

  -- Called for each session. It depends on its arguments alone.
  ---@param index integer
  ---@param rng veeksha.Rng
  ---@return veeksha.Session
  return function(index, rng)
    local question = synthetic(rng:stream("question"):int(20, 60))
    return {
      requests = {
        { system = document, user = question, output = { tokens = 128, exact = true } },
      },
      labels = { topic = index % 2 == 0 and "even" or "odd" },
    }
  end
end
