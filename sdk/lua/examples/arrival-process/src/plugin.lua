-- A Poisson process whose rate rises from one session per second.

---@param config { acceleration: number }
return function(config)
  ---@param rng veeksha.Rng
  ---@return fun(count: integer): number[]
  return function(rng)
    -- The position that the process has reached, in seconds.
    ---@type number
    local at = 0

    return function(count)
      local arrivals = {}
      for i = 1, count do
        -- Sessions per second at this instant.
        local rate = 1 + config.acceleration * at
        at += rng:exponential(1 / rate)
        arrivals[i] = at
      end
      return arrivals
    end
  end
end
