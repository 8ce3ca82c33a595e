// An agent that asks again, in the same conversation, until an answer is short.

#include <stdlib.h>

#include "veeksha.h"

// An open generator: its configuration.
struct exports_agent_generator_generator_t {
  uint32_t turns;
};

// A live session.
struct exports_agent_generator_agent_t {
  uint32_t turns_left;
  uint32_t node;
};

void exports_agent_generator_describe(exports_agent_generator_descriptor_t *ret) {
  *ret = veeksha_descriptor("ask_again", "0.1.0", "asks again until an answer is short",
                            "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
                            "\"turns\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,\"default\":5}}}");
}

bool exports_agent_generator_static_generator_open(veeksha_string_t *config,
                                                   exports_agent_generator_own_generator_t *ret,
                                                   exports_agent_generator_error_t *err) {
  (void)err;
  exports_agent_generator_generator_t *generator = calloc(1, sizeof *generator);
  generator->turns = veeksha_json_u32(veeksha_member(veeksha_json(*config), "turns"), 5);
  veeksha_string_free(config);
  *ret = exports_agent_generator_generator_new(generator);
  return true;
}

void exports_agent_generator_generator_destructor(exports_agent_generator_generator_t *generator) { free(generator); }

void exports_agent_generator_agent_destructor(exports_agent_generator_agent_t *agent) { free(agent); }

// Nothing is guaranteed of all sessions.
void exports_agent_generator_method_generator_guarantees(exports_agent_generator_generator_t *self,
                                                         exports_agent_generator_guarantees_t *ret) {
  (void)self;
  *ret = (exports_agent_generator_guarantees_t){0};
}

// The workload has no end.
bool exports_agent_generator_method_generator_length(exports_agent_generator_generator_t *self, uint64_t *ret) {
  (void)self;
  (void)ret;
  return false;
}

bool exports_agent_generator_method_generator_start(exports_agent_generator_generator_t *self, uint64_t index,
                                                    exports_agent_generator_tuple2_own_agent_opening_t *ret,
                                                    exports_agent_generator_error_t *err) {
  (void)err;
  exports_agent_generator_agent_t *agent = calloc(1, sizeof *agent);
  agent->turns_left = self->turns - 1;
  veeksha_request_t first = veeksha_request(agent->node);
  veeksha_add_synthetic(veeksha_add_message(&first, VEEKSHA_ROLE_USER), index, 200);
  veeksha_output_at_most(&first, 400);
  *ret = (exports_agent_generator_tuple2_own_agent_opening_t){0};
  *VEEKSHA_PUSH(&ret->f1.step.requests) = first;
  ret->f0 = exports_agent_generator_agent_new(agent);
  return true;
}

bool exports_agent_generator_method_agent_answered(exports_agent_generator_agent_t *self,
                                                   exports_agent_generator_response_t *response,
                                                   exports_agent_generator_step_t *ret,
                                                   exports_agent_generator_error_t *err) {
  (void)err;
  *ret = (exports_agent_generator_step_t){0};
  if (veeksha_equals(response->finish_reason, "stop") || self->turns_left == 0) {
    ret->done = true;
  } else {
    self->turns_left--;
    self->node++;
    veeksha_request_t next = veeksha_request(self->node);
    veeksha_history(&next, response->node);
    veeksha_add_text(veeksha_add_message(&next, VEEKSHA_ROLE_USER), "Shorter, please.");
    veeksha_output_at_most(&next, 400);
    *VEEKSHA_PUSH(&ret->requests) = next;
  }
  exports_agent_generator_response_free(response);
  return true;
}

// A request that failed ends the session.
bool exports_agent_generator_method_agent_failed(exports_agent_generator_agent_t *self,
                                                 exports_agent_generator_failure_t *failure,
                                                 exports_agent_generator_step_t *ret,
                                                 exports_agent_generator_error_t *err) {
  (void)self;
  (void)err;
  exports_agent_generator_failure_free(failure);
  *ret = (exports_agent_generator_step_t){.done = true};
  return true;
}

// This agent cancels nothing and runs no tools, so the host does not call the next two.
bool exports_agent_generator_method_agent_cancelled(exports_agent_generator_agent_t *self,
                                                    exports_agent_generator_response_t *response,
                                                    exports_agent_generator_step_t *ret,
                                                    exports_agent_generator_error_t *err) {
  (void)self;
  (void)err;
  exports_agent_generator_response_free(response);
  *ret = (exports_agent_generator_step_t){.done = true};
  return true;
}

bool exports_agent_generator_method_agent_tool_ended(exports_agent_generator_agent_t *self,
                                                     exports_agent_generator_tool_result_t *ended,
                                                     exports_agent_generator_step_t *ret,
                                                     exports_agent_generator_error_t *err) {
  (void)self;
  (void)ended;
  (void)err;
  *ret = (exports_agent_generator_step_t){.done = true};
  return true;
}
