-- Stalls: how often, and for how long, an answer paused.
--
-- A separate file, for `veeksha-host evaluate RUN --plugin stalls.lua`; the same table may stand
-- among the `evaluators` of a Lua scenario, with `type = "lua"`. What each function is given and
-- may return is described in the README of this folder.

-- A reader notices a pause of this many seconds.
local longest = 0.2

-- The pauses of an answer, in seconds.
local function pauses(request)
  local found = {}
  local at = request.chunk_at
  for i = 2, #at do
    local gap = at[i] - at[i - 1]
    if gap > longest then
      table.insert(found, gap)
    end
  end
  return found
end

-- Stalls of each session, in the order in which the sessions were first seen: a metric may keep
-- what it likes.
local sessions, order = {}, {}

return {
  name = "stalls",

  metrics = {
    stalls = {
      unit = "1",
      better = "less",
      summary = "gaps above 200 ms between chunks of one answer",
      observe = function(request)
        -- An answer without a chunk has no gaps to count: it has no value, which is not 0.
        if #request.chunk_at == 0 then
          return nil
        end
        return #pauses(request)
      end,
    },
    stall_time = {
      unit = "s",
      better = "less",
      summary = "length of each gap above 200 ms between chunks",
      observe = pauses,
    },
    stalls_of_session = {
      unit = "1",
      better = "less",
      summary = "gaps above 200 ms in all answers of one session",
      observe = function(request)
        -- Nor has a session of which no answer has a chunk.
        if #request.chunk_at == 0 then
          return nil
        end
        if not sessions[request.session] then
          sessions[request.session] = 0
          table.insert(order, request.session)
        end
        sessions[request.session] += #pauses(request)
      end,
      finish = function()
        local found = {}
        for i, session in order do
          found[i] = sessions[session]
        end
        return found
      end,
    },
  },

  -- Part of goodput: a good answer never pauses.
  good = function(request)
    return #pauses(request) == 0
  end,

  -- Judges the whole run.
  check = function(results)
    local worst = results:percentile("stalls", 99)
    return {
      {
        name = "hardly any stalls",
        met = worst == nil or worst <= 1,
        observed = worst,
        threshold = 1,
        detail = "P99 of the stalls of an answer",
      },
    }
  end,
}
