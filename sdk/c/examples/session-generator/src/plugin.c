// Questions about one long document: a shared prefix and a short question.

#include <stdlib.h>

#include "veeksha.h"

// An open workload: its configuration.
struct exports_session_generator_workload_t {
  uint32_t document_tokens;
};

void exports_session_generator_describe(exports_session_generator_descriptor_t *ret) {
  *ret = veeksha_descriptor(
      "shared_document", "0.1.0", "short questions about one long document",
      "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
      "\"document_tokens\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000000,\"default\":4000}}}");
}

bool exports_session_generator_static_workload_open(veeksha_string_t *config,
                                                    exports_session_generator_own_workload_t *ret,
                                                    exports_session_generator_error_t *err) {
  (void)err;
  exports_session_generator_workload_t *workload = calloc(1, sizeof *workload);
  workload->document_tokens = veeksha_json_u32(veeksha_member(veeksha_json(*config), "document_tokens"), 4000);
  veeksha_string_free(config);
  *ret = exports_session_generator_workload_new(workload);
  return true;
}

void exports_session_generator_workload_destructor(exports_session_generator_workload_t *workload) { free(workload); }

void exports_session_generator_method_workload_guarantees(exports_session_generator_workload_t *self,
                                                          exports_session_generator_guarantees_t *ret) {
  (void)self;
  *ret = (exports_session_generator_guarantees_t){.max_output_tokens = {true, 128}, .max_depth = {true, 1}};
}

// The workload has no end.
bool exports_session_generator_method_workload_length(exports_session_generator_workload_t *self, uint64_t *ret) {
  (void)self;
  (void)ret;
  return false;
}

bool exports_session_generator_method_workload_sessions(exports_session_generator_workload_t *self, uint64_t first,
                                                        uint32_t count,
                                                        exports_session_generator_list_session_t *ret,
                                                        exports_session_generator_error_t *err) {
  (void)err;
  *ret = (exports_session_generator_list_session_t){NULL, 0};
  for (uint64_t index = first; index < first + count; index++) {
    // A session depends on the configuration and its index alone, so the draws are named by it.
    veeksha_draws_t draws = veeksha_stream(index, "question");
    veeksha_request_t request = veeksha_request(0);
    veeksha_add_synthetic(veeksha_add_message(&request, VEEKSHA_ROLE_SYSTEM), 1, self->document_tokens);
    veeksha_add_synthetic(veeksha_add_message(&request, VEEKSHA_ROLE_USER), index + 2,
                          veeksha_between(&draws, 20, 60));
    veeksha_output_exactly(&request, 128);
    *VEEKSHA_PUSH(&VEEKSHA_PUSH(ret)->requests) = request;
  }
  return true;
}
