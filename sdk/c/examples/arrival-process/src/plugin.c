// A Poisson process whose rate rises from one session per second.

#include <stdlib.h>

#include "veeksha.h"

// An open process: its configuration, and the position that it has reached.
struct exports_arrival_process_process_t {
  double acceleration;
  double seconds;
  veeksha_draws_t gaps;
};

void exports_arrival_process_describe(exports_arrival_process_descriptor_t *ret) {
  *ret = veeksha_descriptor("rising_rate", "0.1.0", "a rate that rises steadily",
                            "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
                            "\"acceleration\":{\"type\":\"number\",\"minimum\":0,\"default\":0.5}}}");
}

bool exports_arrival_process_static_process_open(veeksha_string_t *config, exports_arrival_process_own_process_t *ret,
                                                 exports_arrival_process_error_t *err) {
  (void)err;
  exports_arrival_process_process_t *process = calloc(1, sizeof *process);
  process->acceleration = veeksha_json_number(veeksha_member(veeksha_json(*config), "acceleration"), 0.5);
  process->gaps = veeksha_shared_stream("gap");
  veeksha_string_free(config);
  *ret = exports_arrival_process_process_new(process);
  return true;
}

void exports_arrival_process_process_destructor(exports_arrival_process_process_t *process) { free(process); }

bool exports_arrival_process_method_process_next(exports_arrival_process_process_t *self, uint32_t count,
                                                 exports_arrival_process_list_nanos_t *ret,
                                                 exports_arrival_process_error_t *err) {
  (void)err;
  *ret = (exports_arrival_process_list_nanos_t){NULL, 0};
  for (uint32_t i = 0; i < count; i++) {
    // Sessions per second at this instant.
    double rate = 1.0 + self->acceleration * self->seconds;
    self->seconds += veeksha_exponential(&self->gaps) / rate;
    *VEEKSHA_PUSH(ret) = (veeksha_nanos_t)(self->seconds * 1e9);
  }
  return true;
}
