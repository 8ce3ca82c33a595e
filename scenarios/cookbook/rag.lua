-- Retrieval: each question comes with five of 200 documents. A few documents are retrieved often
-- (Zipf's law), so a prefix cache helps if the popular ones come first.
--
--     veeksha-host simulate scenarios/cookbook/rag.lua
--     veeksha-host evaluate benchmark_output/latest --by documents

local count = 200
local retrieved = 5
local exponent = 1.1

local instructions = synthetic(300)

-- The share of retrievals that goes to documents 1 to i, by Zipf's law: document i is retrieved in
-- proportion to 1 / i^exponent.
local shares = {}
local total = 0
for document = 1, count do
  total += 1 / document ^ exponent
  shares[document] = total
end

-- Draws a document.
local function draw(rng)
  local wanted = rng:unit() * total
  local first, last = 1, count
  while first < last do
    local middle = (first + last) // 2
    if shares[middle] < wanted then first = middle + 1 else last = middle end
  end
  return first
end

local function question(index, rng)
  local chosen = {}
  local is_chosen = {}
  while #chosen < retrieved do
    local document = draw(rng)
    if not is_chosen[document] then
      is_chosen[document] = true
      table.insert(chosen, document)
    end
  end
  -- Popular documents first, so that prompts share long beginnings.
  table.sort(chosen)

  local content = {}
  for _, document in chosen do
    table.insert(content, { `Document {document}:\n`, synthetic(180, `document {document}`), "\n\n" })
  end
  table.insert(content, { "Question:\n", synthetic(rng:int(20, 60)) })
  local documents = if chosen[1] == 1 then "with the most popular" else "others"
  return {
    requests = { { system = instructions, user = content, output = 100 } },
    labels = { documents = documents },
  }
end

return {
  seed = 42,
  output_dir = "benchmark_output",
  session_generator = { type = "lua", sessions = question },
  traffic_scheduler = {
    type = "rate",
    interval_generator = { type = "poisson", arrival_rate = 4 },
    cancel_session_on_failure = true,
  },
  client = { type = "openai_chat_completions", api_base = "sim://default", model = "sim" },
  runtime = { max_sessions = 40, benchmark_timeout = 120 },
  evaluators = { { type = "performance", group_by = { "documents" } } },
  certificate = { simulator = { degraded = 0.5, invalid = 0.5 } },
}
