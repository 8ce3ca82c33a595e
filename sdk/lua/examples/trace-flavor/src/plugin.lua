-- One request for each row of a log: `time` in seconds, `input_tokens`, `output_tokens`.

-- The host reads the file, checks each row against the columns, and passes the groups.
return {
  type = "lua",
  columns = { time = "number", input_tokens = "count", output_tokens = "count" },
  arrival = { column = "time", unit = "seconds" },

  ---@param group veeksha.TraceGroup
  ---@return veeksha.Session?, string?
  session = function(group)
    local row = group.rows[1]
    local input, output = row.cells.input_tokens, row.cells.output_tokens
    if input == 0 or output == 0 then
      return nil, "input_tokens and output_tokens must be 1 or more"
    end
    return {
      requests = {
        {
          user = synthetic(input),
          output = { tokens = output, exact = true },
          output_tokens = output,
        },
      },
      arrives_at = row.at,
    }
  end,
}
