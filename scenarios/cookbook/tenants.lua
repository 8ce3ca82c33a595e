-- Several tenants on one server: each has its share of the sessions, its lengths, its priority and
-- its objectives, and is reported apart.
--
--     veeksha-host simulate scenarios/cookbook/tenants.lua

local tenants = {
  { name = "chat", share = 0.7, prompt = { 50, 300 }, output = 80, priority = 0 },
  { name = "code", share = 0.2, prompt = { 500, 1500 }, output = 200, priority = 0 },
  { name = "batch", share = 0.1, prompt = { 2000, 3000 }, output = 100, priority = 10 },
}

-- Draws a tenant by its share. The shares add up to 1.
local function draw(rng)
  local left = rng:unit()
  for _, tenant in tenants do
    left -= tenant.share
    if left < 0 then return tenant end
  end
  return tenants[1]
end

-- Each tenant has its own system prompt, which its sessions share.
local prompts = {}
for _, tenant in tenants do prompts[tenant.name] = synthetic(200, tenant.name) end

return {
  seed = 42,
  output_dir = "benchmark_output",

  session_generator = {
    type = "lua",
    sessions = function(index, rng)
      local tenant = draw(rng)
      return {
        requests = { {
          system = prompts[tenant.name],
          user = synthetic(rng:int(tenant.prompt[1], tenant.prompt[2])),
          output = tenant.output,
          -- vLLM's scheduling priority: lower numbers first.
          body = { priority = tenant.priority },
        } },
        labels = { tenant = tenant.name },
      }
    end,
  },

  traffic_scheduler = {
    type = "rate",
    interval_generator = { type = "poisson", arrival_rate = 5 },
    cancel_session_on_failure = true,
  },
  client = { type = "openai_chat_completions", api_base = "sim://default", model = "sim" },
  runtime = { max_sessions = 60, benchmark_timeout = 120 },

  evaluators = { {
    type = "performance",
    group_by = { "tenant" },
    slos = {
      'p95(ttfc{tenant="chat"}) < 2s',
      'p95(ttfc{tenant="code"}) < 4s',
      'p95(end_to_end_latency{tenant="batch"}) < 60s',
    },
  } },
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
