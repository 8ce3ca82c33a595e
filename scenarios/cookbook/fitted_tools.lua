-- Tools whose durations follow measured ones: lognormal distributions, fitted to a list of calls.
--
--     veeksha-host simulate scenarios/cookbook/fitted_tools.lua

local calls = require("data/tool_calls")

-- The lognormal distribution with the highest likelihood: its median is the exponential of the mean
-- of the logarithms, and sigma is their standard deviation.
local function fitted(tool)
  local logarithms = {}
  for _, call in calls do
    local name, seconds = call[1], call[2]
    if name == tool then table.insert(logarithms, math.log(seconds)) end
  end
  local sum = 0
  for _, logarithm in logarithms do sum += logarithm end
  local mean = sum / #logarithms
  local squares = 0
  for _, logarithm in logarithms do squares += (logarithm - mean) ^ 2 end
  return {
    type = "lognormal",
    median = math.exp(mean),
    sigma = math.sqrt(squares / #logarithms),
  }
end

return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "lua",
    agent = function(session)
      local plan = session:request { user = { "Find the bug:\n", synthetic(300) }, output = 80 }
      local found, tested = session:parallel({ tool = "search" }, { tool = "tests" })
      session:request {
        user = { "The search found:\n", result_of(found), "\nThe tests printed:\n", result_of(tested) },
        history = plan,
        output = 120,
      }
    end,
  },

  tools = {
    search = { time = fitted("search"), result_tokens = { type = "uniform", min = 100, max = 300 } },
    tests = { time = fitted("tests"), servers = 8, result_tokens = { type = "uniform", min = 200, max = 600 } },
  },

  traffic_scheduler = {
    type = "rate",
    interval_generator = { type = "poisson", arrival_rate = 2 },
    cancel_session_on_failure = true,
  },
  client = { type = "openai_chat_completions", api_base = "sim://default", model = "sim" },
  runtime = { max_sessions = 20, benchmark_timeout = 120 },
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
