-- Map and reduce: an agent divides a long text, subagents summarize the parts, four at a time, and
-- one request combines the summaries.
--
--     veeksha-host simulate scenarios/cookbook/map_reduce.lua

local parts = 10
local at_once = 4

local instructions = synthetic(150)

local function summarize(session)
  local summaries = {}
  local next_part = 1

  -- A worker takes the next part as soon as its last summary is complete.
  local function worker(sub)
    while next_part <= parts do
      local part = next_part
      next_part += 1
      summaries[part] = sub:request {
        system = instructions,
        user = { "Summarize:\n", synthetic(sub.rng:int(400, 900)) },
        output = 60,
        labels = { step = "map" },
      }
    end
  end

  local workers = {}
  for _ = 1, at_once do table.insert(workers, session:spawn(worker)) end
  session:parallel(table.unpack(workers))

  -- The reduction sends what the model said.
  local content = { "Combine these summaries:\n" }
  for _, summary in summaries do
    table.insert(content, { summary.text, "\n" })
  end
  session:request { system = instructions, user = content, output = 150, labels = { step = "reduce" } }
end

return {
  seed = 42,
  output_dir = "benchmark_output",
  session_generator = { type = "lua", agent = summarize },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },
  client = { type = "openai_chat_completions", api_base = "sim://default", model = "sim" },
  runtime = { max_sessions = 8, benchmark_timeout = 120 },
  evaluators = { { type = "performance", group_by = { "step" } } },
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
