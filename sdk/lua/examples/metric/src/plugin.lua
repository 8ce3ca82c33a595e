-- The longest gap between two chunks of an answer.

---@param request veeksha.Completion
---@return number?
local function longest_gap(request)
  local longest = nil
  for i = 2, #request.chunk_at do
    local gap = request.chunk_at[i] - request.chunk_at[i - 1]
    longest = math.max(longest or 0, gap)
  end
  -- An answer of one chunk has no gap: it has no value, which is not 0.
  return longest
end

return {
  type = "lua",
  name = "answer_gaps",
  metrics = {
    longest_gap = {
      unit = "s",
      better = "less",
      summary = "longest gap between two chunks of an answer",
      observe = longest_gap,
    },
  },
}
