// The helpers of veeksha.h, except for JSON.

#include "veeksha.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// -- Texts and lists --------------------------------------------------------------------------

void *veeksha_grow(void *items, size_t length, size_t size) {
  // The capacity is the power of two from the length on, so that it need not be stored.
  if ((length & (length - 1)) == 0) {
    size_t capacity = length == 0 ? 1 : 2 * length;
    if (capacity > SIZE_MAX / size) abort();
    items = realloc(items, capacity * size);
    if (items == NULL) abort();
  }
  memset((char *)items + length * size, 0, size);
  return items;
}

static veeksha_string_t copy_of(const char *text, size_t length) {
  veeksha_string_t copy = {NULL, length};
  if (length > 0) {
    copy.ptr = malloc(length);
    if (copy.ptr == NULL) abort();
    memcpy(copy.ptr, text, length);
  }
  return copy;
}

veeksha_string_t veeksha_text(const char *text) { return copy_of(text, strlen(text)); }

static veeksha_string_t formatted(const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  veeksha_string_t text = {NULL, 0};
  if (length > 0) {
    char *buffer = malloc((size_t)length + 1);
    if (buffer == NULL) abort();
    vsnprintf(buffer, (size_t)length + 1, format, again);
    text.ptr = (uint8_t *)buffer;
    text.len = (size_t)length;
  }
  va_end(again);
  return text;
}

veeksha_string_t veeksha_format(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  veeksha_string_t text = formatted(format, arguments);
  va_end(arguments);
  return text;
}

bool veeksha_equals(veeksha_string_t text, const char *other) {
  size_t length = strlen(other);
  return text.len == length && (length == 0 || memcmp(text.ptr, other, length) == 0);
}

void veeksha_add_pair(veeksha_list_tuple2_string_string_t *pairs, const char *name, const char *value) {
  veeksha_tuple2_string_string_t *pair = VEEKSHA_PUSH(pairs);
  pair->f0 = veeksha_text(name);
  pair->f1 = veeksha_text(value);
}

// -- Description, errors, log -----------------------------------------------------------------

veeksha_descriptor_t veeksha_descriptor(const char *name, const char *version, const char *summary,
                                        const char *schema) {
  veeksha_descriptor_t descriptor = {
      .name = veeksha_text(name),
      .version = veeksha_text(version),
      .summary = veeksha_text(summary),
      .config_schema = veeksha_text(schema),
  };
  return descriptor;
}

bool veeksha_fail(veeksha_error_t *error, const char *code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  memset(error, 0, sizeof *error);
  error->code = veeksha_text(code);
  error->message = formatted(format, arguments);
  va_end(arguments);
  return false;
}

bool veeksha_fail_config(veeksha_error_t *error, const char *path, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  memset(error, 0, sizeof *error);
  error->code = veeksha_text("config");
  error->message = formatted(format, arguments);
  error->path.is_some = true;
  error->path.val = veeksha_text(path);
  va_end(arguments);
  return false;
}

void veeksha_log(veeksha_log_level_t level, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  veeksha_string_t line = formatted(format, arguments);
  va_end(arguments);
  veeksha_log_write(level, &line);
  veeksha_string_free(&line);
}

// -- Requests and tool runs -------------------------------------------------------------------

veeksha_request_t veeksha_request(uint32_t node) {
  veeksha_request_t request;
  memset(&request, 0, sizeof request);
  request.node = node;
  return request;
}

veeksha_tool_run_t veeksha_tool_run(uint32_t node, const char *tool) {
  veeksha_tool_run_t run;
  memset(&run, 0, sizeof run);
  run.node = node;
  run.tool.is_some = true;
  run.tool.val = veeksha_text(tool);
  return run;
}

veeksha_tool_run_t veeksha_timer(uint32_t node, veeksha_nanos_t time) {
  veeksha_tool_run_t run;
  memset(&run, 0, sizeof run);
  run.node = node;
  run.service_time.is_some = time > 0;
  run.service_time.val = time;
  return run;
}

void veeksha_after_event(veeksha_list_edge_t *parents, uint32_t node, veeksha_trigger_t trigger,
                         veeksha_nanos_t delay) {
  // A later edge to the same event replaces the earlier one.
  veeksha_edge_t *edge = NULL;
  for (size_t i = 0; i < parents->len && edge == NULL; i++) {
    if (parents->ptr[i].parent == node && parents->ptr[i].trigger == trigger) edge = &parents->ptr[i];
  }
  if (edge == NULL) edge = VEEKSHA_PUSH(parents);
  edge->parent = node;
  edge->trigger = trigger;
  edge->delay = delay;
}

void veeksha_after(veeksha_list_edge_t *parents, uint32_t node) {
  veeksha_after_event(parents, node, VEEKSHA_TRIGGER_COMPLETED, 0);
}

void veeksha_history(veeksha_request_t *request, uint32_t node) {
  veeksha_after(&request->parents, node);
  request->history_parent.is_some = true;
  request->history_parent.val = node;
}

veeksha_message_t *veeksha_add_message(veeksha_request_t *request, veeksha_role_t role) {
  veeksha_message_t *message = VEEKSHA_PUSH(&request->messages);
  message->role = role;
  return message;
}

void veeksha_add_text(veeksha_message_t *message, const char *text) {
  veeksha_segment_t *segment = VEEKSHA_PUSH(&message->content);
  segment->tag = VEEKSHA_SEGMENT_TEXT;
  segment->val.text = veeksha_text(text);
}

void veeksha_add_synthetic(veeksha_message_t *message, uint64_t seed, uint32_t tokens) {
  veeksha_segment_t *segment = VEEKSHA_PUSH(&message->content);
  segment->tag = VEEKSHA_SEGMENT_SYNTHETIC;
  segment->val.synthetic.seed.high = (uint32_t)(seed >> 32);
  segment->val.synthetic.seed.low = (uint32_t)seed;
  segment->val.synthetic.tokens = tokens;
}

void veeksha_add_result_of(veeksha_message_t *message, uint32_t run) {
  veeksha_segment_t *segment = VEEKSHA_PUSH(&message->content);
  segment->tag = VEEKSHA_SEGMENT_RESULT_OF;
  segment->val.result_of = run;
}

static void set_output(veeksha_request_t *request, uint32_t tokens, bool exact) {
  request->output.target_tokens.is_some = true;
  request->output.target_tokens.val = tokens;
  request->output.exact = exact;
}

void veeksha_output_at_most(veeksha_request_t *request, uint32_t tokens) { set_output(request, tokens, false); }

void veeksha_output_exactly(veeksha_request_t *request, uint32_t tokens) { set_output(request, tokens, true); }

// -- Randomness -------------------------------------------------------------------------------

// The session whose streams belong to the run as a whole; no workload has that many sessions.
#define RUN ((UINT64_C(1) << 53) - 1)
#define BLOCK (sizeof((veeksha_draws_t *)0)->block / sizeof(uint32_t))
#define TAU 6.28318530717958647692528676655900577

veeksha_draws_t veeksha_stream(uint64_t session, const char *name) {
  veeksha_draws_t draws = {.session = session, .name = name, .used = BLOCK};
  return draws;
}

veeksha_draws_t veeksha_shared_stream(const char *name) { return veeksha_stream(RUN, name); }

uint32_t veeksha_word(veeksha_draws_t *draws) {
  if (draws->used == BLOCK) {
    // A call of the host costs as much as computing some ten words.
    veeksha_string_t name = {(uint8_t *)draws->name, strlen(draws->name)};
    veeksha_list_u32_t words;
    veeksha_random_words(draws->session, &name, draws->next, BLOCK, &words);
    if (words.len != BLOCK) abort();
    memcpy(draws->block, words.ptr, sizeof draws->block);
    veeksha_list_u32_free(&words);
    draws->next += BLOCK;
    draws->used = 0;
  }
  return draws->block[draws->used++];
}

uint64_t veeksha_long_word(veeksha_draws_t *draws) {
  uint64_t high = veeksha_word(draws);
  return high << 32 | veeksha_word(draws);
}

double veeksha_unit(veeksha_draws_t *draws) { return (double)(veeksha_long_word(draws) >> 11) * 0x1p-53; }

// Uniform on (0, 1]: what a logarithm can take.
static double unit_open(veeksha_draws_t *draws) { return 1.0 - veeksha_unit(draws); }

// Lemire's multiply and reject.
uint32_t veeksha_below(veeksha_draws_t *draws, uint32_t bound) {
  if (bound == 0) return 0;
  uint32_t threshold = -bound % bound;
  for (;;) {
    uint64_t product = (uint64_t)veeksha_word(draws) * bound;
    if ((uint32_t)product >= threshold) return (uint32_t)(product >> 32);
  }
}

uint32_t veeksha_between(veeksha_draws_t *draws, uint32_t min, uint32_t max) {
  if (max <= min) return min + veeksha_below(draws, 1);
  uint32_t width = max - min + 1;
  return width == 0 ? veeksha_word(draws) : min + veeksha_below(draws, width);
}

bool veeksha_chance(veeksha_draws_t *draws, double probability) { return veeksha_unit(draws) < probability; }

double veeksha_exponential(veeksha_draws_t *draws) { return -log(unit_open(draws)); }

// Box and Muller; the second of the pair is not kept, so that a draw takes the same words whatever
// was drawn before.
double veeksha_normal(veeksha_draws_t *draws) {
  double radius = sqrt(-2.0 * log(unit_open(draws)));
  return radius * cos(TAU * veeksha_unit(draws));
}

// Marsaglia and Tsang (2000); shapes below 1 are drawn as Gamma(shape + 1) * U^(1/shape).
double veeksha_gamma(veeksha_draws_t *draws, double shape) {
  if (shape < 1.0) {
    double boost = pow(unit_open(draws), 1.0 / shape);
    return veeksha_gamma(draws, shape + 1.0) * boost;
  }
  double d = shape - 1.0 / 3.0;
  double c = 1.0 / sqrt(9.0 * d);
  for (;;) {
    double x = veeksha_normal(draws);
    double root = 1.0 + c * x;
    double v = root * root * root;
    if (v > 0.0 && log(unit_open(draws)) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
  }
}
