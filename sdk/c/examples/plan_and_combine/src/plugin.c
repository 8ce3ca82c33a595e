// An agent that plans, runs two tools at once, combines their results, and asks again with twice the
// length while its answer is cut off. It is written in every language of the SDKs (sdk/README.md),
// and makes the same sessions in each.

#include <stdlib.h>

#include "veeksha.h"

// The nodes of a session; further attempts to combine follow.
enum { PLAN = 1, SEARCH = 2, SANDBOX = 3, COMBINE = 4 };

// An open generator: its configuration.
struct exports_agent_generator_generator_t {
  uint32_t plan_tokens;
  uint32_t retries;
};

// A live session.
struct exports_agent_generator_agent_t {
  uint32_t retries_left;
  uint32_t tools_running;
  // The number of the next attempt to combine, from 1, and its length.
  uint32_t attempt;
  uint32_t tokens;
};

typedef exports_agent_generator_agent_t agent_t;
typedef exports_agent_generator_step_t step_t;

void exports_agent_generator_describe(exports_agent_generator_descriptor_t *ret) {
  *ret = veeksha_descriptor("plan_and_combine", "0.1.0", "a plan, two tools at once, and their combination",
                            "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
                            "\"plan_tokens\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100000,\"default\":200},"
                            "\"retries\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":10,\"default\":2}}}");
}

bool exports_agent_generator_static_generator_open(veeksha_string_t *config,
                                                   exports_agent_generator_own_generator_t *ret,
                                                   exports_agent_generator_error_t *err) {
  (void)err;
  exports_agent_generator_generator_t *generator = calloc(1, sizeof *generator);
  veeksha_json_t json = veeksha_json(*config);
  generator->plan_tokens = veeksha_json_u32(veeksha_member(json, "plan_tokens"), 200);
  generator->retries = veeksha_json_u32(veeksha_member(json, "retries"), 2);
  veeksha_string_free(config);
  *ret = exports_agent_generator_generator_new(generator);
  return true;
}

void exports_agent_generator_generator_destructor(exports_agent_generator_generator_t *generator) { free(generator); }

void exports_agent_generator_agent_destructor(agent_t *agent) { free(agent); }

void exports_agent_generator_method_generator_guarantees(exports_agent_generator_generator_t *self,
                                                         exports_agent_generator_guarantees_t *ret) {
  (void)self;
  *ret = (exports_agent_generator_guarantees_t){0};
}

bool exports_agent_generator_method_generator_length(exports_agent_generator_generator_t *self, uint64_t *ret) {
  (void)self;
  (void)ret;
  return false;
}

bool exports_agent_generator_method_generator_start(exports_agent_generator_generator_t *self, uint64_t index,
                                                    exports_agent_generator_tuple2_own_agent_opening_t *ret,
                                                    exports_agent_generator_error_t *err) {
  (void)err;
  agent_t *agent = calloc(1, sizeof *agent);
  *agent = (agent_t){.retries_left = self->retries, .tools_running = 2, .attempt = 1, .tokens = 200};
  veeksha_draws_t draws = veeksha_stream(index, "plan");
  veeksha_request_t plan = veeksha_request(PLAN);
  veeksha_add_synthetic(veeksha_add_message(&plan, VEEKSHA_ROLE_SYSTEM), 1, 300);
  veeksha_message_t *task = veeksha_add_message(&plan, VEEKSHA_ROLE_USER);
  veeksha_add_text(task, "Task:\n");
  veeksha_add_synthetic(task, index, self->plan_tokens + veeksha_word(&draws) % 100);
  veeksha_output_at_most(&plan, 120);
  *ret = (exports_agent_generator_tuple2_own_agent_opening_t){0};
  *VEEKSHA_PUSH(&ret->f1.step.requests) = plan;
  veeksha_add_pair(&ret->f1.labels, "agent", "plan_and_combine");
  ret->f0 = exports_agent_generator_agent_new(agent);
  return true;
}

static void run_tools(step_t *step) {
  veeksha_tool_run_t search = veeksha_tool_run(SEARCH, "search");
  veeksha_after(&search.parents, PLAN);
  veeksha_tool_run_t sandbox = veeksha_tool_run(SANDBOX, "sandbox");
  veeksha_after(&sandbox.parents, PLAN);
  sandbox.service_time = (veeksha_option_nanos_t){true, 250000000};
  sandbox.result_tokens = (veeksha_option_u32_t){true, 150};
  *VEEKSHA_PUSH(&step->tool_runs) = search;
  *VEEKSHA_PUSH(&step->tool_runs) = sandbox;
}

// The next attempt to combine: the first one follows the tools, a later one the attempt before it.
static void combine(agent_t *agent, step_t *step) {
  uint32_t node = COMBINE + agent->attempt - 1;
  veeksha_request_t request = veeksha_request(node);
  veeksha_history(&request, PLAN);
  if (agent->attempt == 1) {
    veeksha_after(&request.parents, SEARCH);
    veeksha_after(&request.parents, SANDBOX);
  } else {
    veeksha_after(&request.parents, node - 1);
  }
  veeksha_message_t *results = veeksha_add_message(&request, VEEKSHA_ROLE_USER);
  veeksha_add_text(results, "Results:\n");
  veeksha_add_result_of(results, SEARCH);
  veeksha_add_result_of(results, SANDBOX);
  veeksha_add_text(results, "\nCombine them.");
  veeksha_output_at_most(&request, agent->tokens);
  veeksha_tuple2_string_string_t *label = VEEKSHA_PUSH(&request.labels);
  *label = (veeksha_tuple2_string_string_t){veeksha_text("attempt"), veeksha_format("%u", (unsigned)agent->attempt)};
  *VEEKSHA_PUSH(&step->requests) = request;
  agent->attempt++;
  agent->tokens *= 2;
}

bool exports_agent_generator_method_agent_answered(agent_t *self, exports_agent_generator_response_t *response,
                                                   step_t *ret, exports_agent_generator_error_t *err) {
  (void)err;
  *ret = (step_t){0};
  if (response->node == PLAN) {
    run_tools(ret);
  } else if (veeksha_equals(response->finish_reason, "length") && self->retries_left > 0) {
    self->retries_left--;
    combine(self, ret);
  } else {
    ret->done = true;
  }
  exports_agent_generator_response_free(response);
  return true;
}

bool exports_agent_generator_method_agent_tool_ended(agent_t *self, exports_agent_generator_tool_result_t *ended,
                                                     step_t *ret, exports_agent_generator_error_t *err) {
  (void)ended;
  (void)err;
  *ret = (step_t){0};
  self->tools_running--;
  if (self->tools_running == 0) combine(self, ret);
  return true;
}

bool exports_agent_generator_method_agent_failed(agent_t *self, exports_agent_generator_failure_t *failure,
                                                 step_t *ret, exports_agent_generator_error_t *err) {
  (void)self;
  (void)err;
  exports_agent_generator_failure_free(failure);
  *ret = (step_t){.done = true};
  return true;
}

bool exports_agent_generator_method_agent_cancelled(agent_t *self, exports_agent_generator_response_t *response,
                                                    step_t *ret, exports_agent_generator_error_t *err) {
  (void)self;
  (void)err;
  exports_agent_generator_response_free(response);
  *ret = (step_t){.done = true};
  return true;
}
