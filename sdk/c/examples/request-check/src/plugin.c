// A good answer never pauses for long.

#include <stdlib.h>

#include "veeksha.h"

// An open check: its configuration.
struct exports_request_check_checker_t {
  double longest_pause;
};

void exports_request_check_describe(exports_request_check_descriptor_t *ret) {
  *ret = veeksha_descriptor("no_long_pause", "0.1.0", "a good answer never pauses for long",
                            "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
                            "\"longest_pause\":{\"type\":\"number\",\"exclusiveMinimum\":0,\"default\":0.2}}}");
}

bool exports_request_check_static_checker_open(veeksha_string_t *config, exports_request_check_own_checker_t *ret,
                                               exports_request_check_error_t *err) {
  (void)err;
  exports_request_check_checker_t *checker = calloc(1, sizeof *checker);
  checker->longest_pause = veeksha_json_number(veeksha_member(veeksha_json(*config), "longest_pause"), 0.2);
  veeksha_string_free(config);
  *ret = exports_request_check_checker_new(checker);
  return true;
}

void exports_request_check_checker_destructor(exports_request_check_checker_t *checker) { free(checker); }

// `chunk_at` holds the chunks of all requests one after the other, and `chunks_end` the number of
// those of each request and of the requests before it.
bool exports_request_check_method_checker_judge(exports_request_check_checker_t *self,
                                                exports_request_check_batch_t *batch, veeksha_list_bool_t *ret,
                                                exports_request_check_error_t *err) {
  (void)err;
  *ret = (veeksha_list_bool_t){NULL, 0};
  uint32_t begin = 0;
  for (size_t request = 0; request < batch->session.len; request++) {
    bool is_good = true;
    for (uint32_t chunk = begin + 1; chunk < batch->chunks_end.ptr[request]; chunk++) {
      veeksha_nanos_t pause = batch->chunk_at.ptr[chunk] - batch->chunk_at.ptr[chunk - 1];
      is_good = is_good && (double)pause <= self->longest_pause * 1e9;
    }
    *VEEKSHA_PUSH(ret) = is_good;
    begin = batch->chunks_end.ptr[request];
  }
  exports_request_check_batch_free(batch);
  return true;
}
