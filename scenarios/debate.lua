-- A debate of two models, which a third one judges. Each request chooses its server by the name of
-- a client: `for` is the scenario's `client`, `against` and `judge` are two of its `clients`. The
-- conversation goes along, whichever server sends the next turn.
--
--     veeksha-host simulate scenarios/debate.lua
--     veeksha-host run scenarios/debate.lua --client.api_base http://localhost:8000/v1 \
--       --clients.against.api_base http://localhost:8001/v1 \
--       --clients.judge.api_base http://localhost:8002/v1

local ROUNDS = 2

local rules = synthetic(150)

local function debate(session)
  local claim = synthetic(session.rng:int(40, 80))
  local speech = nil
  for _ = 1, ROUNDS do
    speech = session:request {
      system = if speech then nil else rules,
      user = if speech then "Answer this for the claim." else { "Argue for this claim: ", claim },
      history = speech,
      output = 60,
      labels = { role = "for" },
    }
    if not speech.ok then
      return
    end
    -- The other model reads the whole debate, and answers to its last turn.
    speech = session:request {
      client = "against",
      user = "Argue against the claim.",
      history = speech,
      output = 60,
      labels = { role = "against" },
    }
    if not speech.ok then
      return
    end
  end
  session:request {
    client = "judge",
    user = "Decide who won, and say why.",
    history = speech,
    output = 30,
    labels = { role = "judge" },
  }
end

return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = { type = "lua", agent = debate },

  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },

  client = { type = "openai_chat_completions", api_base = "sim://default", model = "pro" },

  -- Missing keys are those of `client`, except that another server has another model and key.
  clients = {
    against = { api_base = "sim://default", model = "contra" },
    -- The judge has another API, and a slower server.
    judge = {
      type = "anthropic_messages",
      api_base = "sim://slow",
      model = "judge",
      additional_sampling_params = { temperature = 0 },
    },
  },

  runtime = { max_sessions = 8, benchmark_timeout = 120 },

  -- The label `client` is added to each request: results, plots and objectives for each server.
  evaluators = { {
    type = "performance",
    group_by = { "client" },
    slos = { 'p90(ttfc{client="judge"}) < 2s' },
  } },

  -- The built-in simulator shares this machine with the client: thresholds for a demonstration.
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
