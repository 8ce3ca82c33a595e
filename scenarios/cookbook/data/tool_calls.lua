-- Durations of real tool calls in seconds, by tool: the input of ../fitted_tools.lua. Replace it by
-- your own, for example from a log in JSON Lines:
--
--     jq -r '"{ \"\(.tool)\", \(.seconds) },"' calls.jsonl
return {
  { "search", 0.31 }, { "search", 0.24 }, { "search", 0.52 }, { "search", 0.28 }, { "search", 0.41 },
  { "search", 0.19 }, { "search", 0.36 }, { "search", 0.95 }, { "search", 0.27 }, { "search", 0.33 },
  { "tests", 2.1 }, { "tests", 3.8 }, { "tests", 1.4 }, { "tests", 9.6 }, { "tests", 2.7 },
  { "tests", 4.4 }, { "tests", 1.9 }, { "tests", 2.2 }, { "tests", 6.3 }, { "tests", 3.1 },
}
