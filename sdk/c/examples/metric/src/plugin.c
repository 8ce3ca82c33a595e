// The longest gap between two chunks of an answer.

#include <stdlib.h>

#include "veeksha.h"

// This metric keeps nothing from one batch to the next.
struct exports_metric_collector_t {
  char unused;
};

void exports_metric_describe(exports_metric_descriptor_t *ret) {
  *ret = veeksha_descriptor("answer_gaps", "0.1.0", "longest gap between two chunks of an answer",
                            "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{}}");
}

bool exports_metric_static_collector_open(veeksha_string_t *config, exports_metric_own_collector_t *ret,
                                          exports_metric_error_t *err) {
  (void)err;
  veeksha_string_free(config);
  *ret = exports_metric_collector_new(calloc(1, sizeof(exports_metric_collector_t)));
  return true;
}

void exports_metric_collector_destructor(exports_metric_collector_t *collector) { free(collector); }

void exports_metric_method_collector_definitions(exports_metric_collector_t *self,
                                                 exports_metric_list_definition_t *ret) {
  (void)self;
  *ret = (exports_metric_list_definition_t){NULL, 0};
  *VEEKSHA_PUSH(ret) = (exports_metric_definition_t){
      .name = veeksha_text("longest_gap"),
      .unit = veeksha_text("s"),
      .better = EXPORTS_METRIC_BETTER_LESS,
      .summary = veeksha_text("longest gap between two chunks of an answer"),
  };
}

// A batch is a table: `chunk_at` holds the chunks of all requests one after the other, and
// `chunks_end` the number of those of each request and of the requests before it.
bool exports_metric_method_collector_observe(exports_metric_collector_t *self, exports_metric_batch_t *batch,
                                             exports_metric_list_sample_t *ret, exports_metric_error_t *err) {
  (void)self;
  (void)err;
  *ret = (exports_metric_list_sample_t){NULL, 0};
  uint32_t begin = 0;
  for (uint32_t request = 0; request < batch->session.len; request++) {
    uint32_t end = batch->chunks_end.ptr[request];
    veeksha_nanos_t longest = 0;
    for (uint32_t chunk = begin + 1; chunk < end; chunk++) {
      veeksha_nanos_t gap = batch->chunk_at.ptr[chunk] - batch->chunk_at.ptr[chunk - 1];
      if (gap > longest) longest = gap;
    }
    // An answer of one chunk has no gap: it has no value, which is not 0.
    if (end >= begin + 2) {
      *VEEKSHA_PUSH(ret) =
          (exports_metric_sample_t){.metric = 0, .value = (double)longest / 1e9, .weight = 1, .of = {true, request}};
    }
    begin = end;
  }
  exports_metric_batch_free(batch);
  return true;
}

bool exports_metric_method_collector_finish(exports_metric_collector_t *self, exports_metric_list_sample_t *ret,
                                            exports_metric_error_t *err) {
  (void)self;
  (void)err;
  *ret = (exports_metric_list_sample_t){NULL, 0};
  return true;
}
