-- An objective for the time to the first chunk of each tier, by the label `tier` of the requests.

---@param bounds table<string, number> Seconds by tier.
return function(bounds)
  return {
    type = "lua",
    name = "tier_bounds",

    -- Called once, with the results of the run.
    ---@param results veeksha.Results
    ---@return veeksha.Verdict[]
    check = function(results)
      local verdicts = {}
      for tier, threshold in pairs(bounds) do
        local observed = results:percentile("ttfc", 99, { tier = tier })
        table.insert(verdicts, {
          name = "P99 of ttfc, " .. tier,
          -- Without requests of this tier there is nothing that misses the bound.
          met = observed == nil or observed <= threshold,
          observed = observed,
          threshold = threshold,
        })
      end
      table.sort(verdicts, function(a, b) return a.name < b.name end)
      return verdicts
    end,
  }
end
