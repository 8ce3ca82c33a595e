// Helpers for plugins of veeksha-host in C.
//
// `contract.h` is generated from the contract: its types, the functions of the host, and the functions
// that a plugin of this kind defines. This header has what makes them short to use.
//
// Memory: a function of the plugin owns its arguments and frees them (`veeksha_string_free`, ...);
// the host takes the ownership of everything that it returns, so all of that comes from `malloc`.
// The functions here copy the texts that they take.
#ifndef VEEKSHA_H
#define VEEKSHA_H

#include "contract.h"

#ifdef __cplusplus
extern "C" {
#endif

// -- Texts and lists --------------------------------------------------------------------------

// A copy of a C string.
veeksha_string_t veeksha_text(const char *text);

// A formatted text, as by `printf`.
veeksha_string_t veeksha_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

// True if a text of the host is this C string.
bool veeksha_equals(veeksha_string_t text, const char *other);

// Appends an item to a list that began empty, and returns its address, which is valid until the
// next item is appended: `*VEEKSHA_PUSH(&ret->requests) = request;`. All lists of the contract have
// the members `ptr` and `len`.
#define VEEKSHA_PUSH(list)                                                   \
  (__extension__({                                                           \
    __typeof__(list) veeksha_list_ = (list);                                 \
    veeksha_list_->ptr = veeksha_grow(veeksha_list_->ptr, veeksha_list_->len, \
                                      sizeof *veeksha_list_->ptr);           \
    &veeksha_list_->ptr[veeksha_list_->len++];                               \
  }))

// Returns the memory of a list with room for one more item, which is zero. Ends the instance if
// there is no memory.
void *veeksha_grow(void *items, size_t length, size_t size);

// Appends a name and a value: to headers or labels.
void veeksha_add_pair(veeksha_list_tuple2_string_string_t *pairs, const char *name, const char *value);

// -- Description, errors, log -----------------------------------------------------------------

// The description of a plugin; `schema` is the JSON schema of its configuration.
veeksha_descriptor_t veeksha_descriptor(const char *name, const char *version, const char *summary,
                                        const char *schema);

// Fills an error: a short constant name for programs, and one line for the user. Returns false, as
// every function of a plugin does that fails.
bool veeksha_fail(veeksha_error_t *error, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Fills the error of a value in the configuration, at a JSON pointer (`/channels/0/type`). Returns
// false.
bool veeksha_fail_config(veeksha_error_t *error, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Writes a line to the user's log: `veeksha_log(VEEKSHA_LOG_LEVEL_INFO, "%u rows", rows);`.
void veeksha_log(veeksha_log_level_t level, const char *format, ...) __attribute__((format(printf, 2, 3)));

// -- Requests and tool runs -------------------------------------------------------------------

// A request without parents and messages, whose answer has the server's length.
veeksha_request_t veeksha_request(uint32_t node);

// A run of a tool of the scenario, whose service time and result are drawn from its distributions.
veeksha_tool_run_t veeksha_tool_run(uint32_t node, const char *tool);

// A timer: it ends after this time.
veeksha_tool_run_t veeksha_timer(uint32_t node, veeksha_nanos_t time);

// Waits for the end of a node.
void veeksha_after(veeksha_list_edge_t *parents, uint32_t node);

// Waits until `delay` after an event of a node (`VEEKSHA_TRIGGER_FIRST_CHUNK`, ...).
void veeksha_after_event(veeksha_list_edge_t *parents, uint32_t node, veeksha_trigger_t trigger,
                         veeksha_nanos_t delay);

// Continues the conversation of a node, and waits for its end.
void veeksha_history(veeksha_request_t *request, uint32_t node);

// Appends a message (`VEEKSHA_ROLE_USER`, ...) and returns it, for the functions below; the address
// is valid until the next message is appended.
veeksha_message_t *veeksha_add_message(veeksha_request_t *request, veeksha_role_t role);

// Appends text that is sent verbatim.
void veeksha_add_text(veeksha_message_t *message, const char *text);

// Appends exactly `tokens` tokens of generated text; equal seeds give equal text.
void veeksha_add_synthetic(veeksha_message_t *message, uint64_t seed, uint32_t tokens);

// Appends the result of a tool run of the session.
void veeksha_add_result_of(veeksha_message_t *message, uint32_t run);

// Asks for at most, or for exactly, this many tokens.
void veeksha_output_at_most(veeksha_request_t *request, uint32_t tokens);
void veeksha_output_exactly(veeksha_request_t *request, uint32_t tokens);

// -- Randomness -------------------------------------------------------------------------------

// A stream of random numbers: a function of (the run's seed, session, name) alone. Give each
// concern a stream of its name. The name must outlive the stream.
typedef struct veeksha_draws_t {
  uint64_t session;
  const char *name;
  uint32_t next;
  uint32_t used;
  uint32_t block[16];
} veeksha_draws_t;

// The stream of a session from its beginning.
veeksha_draws_t veeksha_stream(uint64_t session, const char *name);

// The stream of the whole run, the same in every session.
veeksha_draws_t veeksha_shared_stream(const char *name);

// The next 32 bits, and the next 64, the upper half first.
uint32_t veeksha_word(veeksha_draws_t *draws);
uint64_t veeksha_long_word(veeksha_draws_t *draws);

// Uniform on [0, 1).
double veeksha_unit(veeksha_draws_t *draws);

// Uniform on 0 .. bound - 1, without bias; 0 for a bound of 0.
uint32_t veeksha_below(veeksha_draws_t *draws, uint32_t bound);

// Uniform on min ..= max, both included.
uint32_t veeksha_between(veeksha_draws_t *draws, uint32_t min, uint32_t max);

// True with a probability.
bool veeksha_chance(veeksha_draws_t *draws, double probability);

// Exponential with mean 1; standard normal; gamma of a shape with scale 1.
double veeksha_exponential(veeksha_draws_t *draws);
double veeksha_normal(veeksha_draws_t *draws);
double veeksha_gamma(veeksha_draws_t *draws, double shape);

// -- JSON -------------------------------------------------------------------------------------

// A value inside a JSON text, which must outlive it; `begin` is null for a value that is absent.
// The host has checked the text: it is valid JSON, and a configuration fits the descriptor's schema.
typedef struct veeksha_json_t {
  const char *begin;
  const char *end;
} veeksha_json_t;

// The value of a whole text.
veeksha_json_t veeksha_json(veeksha_string_t text);

// The member of an object with this name; absent if there is none, if it is null, or if the value
// is not an object. The last one counts, as in every reader of JSON here.
veeksha_json_t veeksha_member(veeksha_json_t object, const char *name);

// Moves to the next element of an array: begin with an `element` that is absent. False at the end.
bool veeksha_next_element(veeksha_json_t array, veeksha_json_t *element);

// True if the value exists and is not null.
bool veeksha_is_present(veeksha_json_t value);

// The value, or `otherwise` if it is absent or of another type. Whole numbers are exact below 2^53.
double veeksha_json_number(veeksha_json_t value, double otherwise);
uint64_t veeksha_json_u64(veeksha_json_t value, uint64_t otherwise);
uint32_t veeksha_json_u32(veeksha_json_t value, uint32_t otherwise);
bool veeksha_json_bool(veeksha_json_t value, bool otherwise);

// A copy of the text of a string, without escapes; empty for other values.
veeksha_string_t veeksha_json_text(veeksha_json_t value);

#ifdef __cplusplus
}
#endif

#endif
