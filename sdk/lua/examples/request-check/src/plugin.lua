-- A good answer never pauses for long.

---@param config { longest_pause: number }
return function(config)
  return {
    type = "lua",
    name = "no_long_pause",

    -- Called for each answered request; a part of goodput.
    ---@param request veeksha.Completion
    ---@return boolean
    good = function(request)
      for i = 2, #request.chunk_at do
        if request.chunk_at[i] - request.chunk_at[i - 1] > config.longest_pause then
          return false
        end
      end
      return true
    end,
  }
end
