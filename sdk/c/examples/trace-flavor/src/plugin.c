// One request for each row of a log: `time` in seconds, `input_tokens`, `output_tokens`.

#include <stdlib.h>

#include "veeksha.h"

// This flavor has no configuration.
struct exports_trace_flavor_flavor_t {
  char unused;
};

void exports_trace_flavor_describe(exports_trace_flavor_descriptor_t *ret) {
  *ret = veeksha_descriptor("token_log", "0.1.0", "one request for each row of a log",
                            "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{}}");
}

bool exports_trace_flavor_static_flavor_open(veeksha_string_t *config, exports_trace_flavor_own_flavor_t *ret,
                                             exports_trace_flavor_error_t *err) {
  (void)err;
  veeksha_string_free(config);
  *ret = exports_trace_flavor_flavor_new(calloc(1, sizeof(exports_trace_flavor_flavor_t)));
  return true;
}

void exports_trace_flavor_flavor_destructor(exports_trace_flavor_flavor_t *flavor) { free(flavor); }

void exports_trace_flavor_method_flavor_guarantees(exports_trace_flavor_flavor_t *self,
                                                   exports_trace_flavor_guarantees_t *ret) {
  (void)self;
  *ret = (exports_trace_flavor_guarantees_t){.max_depth = {true, 1}};
}

static void column(exports_trace_flavor_layout_t *layout, const char *name, exports_trace_flavor_cell_t cell) {
  exports_trace_flavor_column_t *added = VEEKSHA_PUSH(&layout->columns);
  added->name = veeksha_text(name);
  added->cell = cell;
  added->required = true;
}

// The host reads the file, checks each row against the columns, and passes the groups.
void exports_trace_flavor_method_flavor_layout(exports_trace_flavor_flavor_t *self,
                                               exports_trace_flavor_layout_t *ret) {
  (void)self;
  *ret = (exports_trace_flavor_layout_t){.grouping = {.tag = EXPORTS_TRACE_FLAVOR_GROUPING_ROW}};
  column(ret, "time", EXPORTS_TRACE_FLAVOR_CELL_NUMBER);
  column(ret, "input_tokens", EXPORTS_TRACE_FLAVOR_CELL_COUNT);
  column(ret, "output_tokens", EXPORTS_TRACE_FLAVOR_CELL_COUNT);
  ret->arrival.is_some = true;
  ret->arrival.val.column = veeksha_text("time");
  ret->arrival.val.unit = EXPORTS_TRACE_FLAVOR_TIME_UNIT_SECONDS;
}

// One request with the recorded lengths. Text that must not repeat when the trace is wrapped depends
// on the epoch.
static bool read_row(exports_trace_flavor_row_t *row, uint64_t epoch, veeksha_session_t *session,
                     veeksha_error_t *err) {
  veeksha_json_t fields = veeksha_json(row->fields);
  uint32_t input = veeksha_json_u32(veeksha_member(fields, "input_tokens"), 0);
  uint32_t output = veeksha_json_u32(veeksha_member(fields, "output_tokens"), 0);
  if (input == 0 || output == 0) {
    return veeksha_fail(err, "row", "row %llu: input_tokens and output_tokens must be 1 or more",
                        (unsigned long long)row->number);
  }
  veeksha_request_t request = veeksha_request(0);
  veeksha_add_synthetic(veeksha_add_message(&request, VEEKSHA_ROLE_USER), epoch << 40 ^ row->number, input);
  veeksha_output_exactly(&request, output);
  request.recording.is_some = true;
  request.recording.val.output_tokens = (veeksha_option_u32_t){true, output};
  *VEEKSHA_PUSH(&session->requests) = request;
  session->arrives_at = (veeksha_option_nanos_t){row->at.is_some, row->at.val};
  return true;
}

bool exports_trace_flavor_method_flavor_sessions(exports_trace_flavor_flavor_t *self,
                                                 exports_trace_flavor_facts_t *trace, uint64_t epoch,
                                                 exports_trace_flavor_list_group_t *groups,
                                                 exports_trace_flavor_list_session_t *ret,
                                                 exports_trace_flavor_error_t *err) {
  (void)self;
  *ret = (exports_trace_flavor_list_session_t){NULL, 0};
  bool is_read = true;
  for (size_t group = 0; group < groups->len && is_read; group++) {
    is_read = read_row(&groups->ptr[group].rows.ptr[0], epoch, VEEKSHA_PUSH(ret), err);
  }
  // After an error the host does not take the sessions.
  if (!is_read) exports_trace_flavor_list_session_free(ret);
  exports_trace_flavor_list_group_free(groups);
  exports_trace_flavor_facts_free(trace);
  return is_read;
}

// The layout does not state `warms_up`, so the host does not ask for a warmup.
bool exports_trace_flavor_method_flavor_warmup(exports_trace_flavor_flavor_t *self,
                                               exports_trace_flavor_facts_t *trace,
                                               exports_trace_flavor_list_group_t *groups,
                                               exports_trace_flavor_list_session_t *ret,
                                               exports_trace_flavor_error_t *err) {
  (void)self;
  (void)err;
  exports_trace_flavor_list_group_free(groups);
  exports_trace_flavor_facts_free(trace);
  *ret = (exports_trace_flavor_list_session_t){NULL, 0};
  return true;
}
