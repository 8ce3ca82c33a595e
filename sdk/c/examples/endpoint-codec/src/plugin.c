// The text of an OpenAI chat stream and nothing else.

#include <stdlib.h>

#include "veeksha.h"

// This codec has no configuration.
struct exports_endpoint_codec_codec_t {
  char unused;
};

void exports_endpoint_codec_describe(exports_endpoint_codec_descriptor_t *ret) {
  *ret = veeksha_descriptor("chat_text", "0.1.0", "the text of an OpenAI chat stream and nothing else",
                            "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{}}");
}

bool exports_endpoint_codec_static_codec_open(veeksha_string_t *config, exports_endpoint_codec_own_codec_t *ret,
                                              exports_endpoint_codec_error_t *err) {
  (void)err;
  veeksha_string_free(config);
  *ret = exports_endpoint_codec_codec_new(calloc(1, sizeof(exports_endpoint_codec_codec_t)));
  return true;
}

void exports_endpoint_codec_codec_destructor(exports_endpoint_codec_codec_t *codec) { free(codec); }

// The host replaces each string that is a placeholder alone, and sends the request.
void exports_endpoint_codec_method_codec_endpoint(exports_endpoint_codec_codec_t *self,
                                                  exports_endpoint_codec_endpoint_t *ret) {
  (void)self;
  *ret = (exports_endpoint_codec_endpoint_t){
      .path = veeksha_text("chat/completions"),
      .request = veeksha_text("{\"model\": \"{{model}}\", \"messages\": \"{{messages}}\", "
                              "\"max_tokens\": \"{{max_tokens}}\", \"stream\": true, "
                              "\"stream_options\": {\"include_usage\": true}}"),
      .framing = EXPORTS_ENDPOINT_CODEC_FRAMING_EVENT_STREAM,
  };
}

static exports_endpoint_codec_part_t *add_part(exports_endpoint_codec_list_part_t *parts, uint8_t tag) {
  exports_endpoint_codec_part_t *part = VEEKSHA_PUSH(parts);
  part->tag = tag;
  return part;
}

static void read_event(veeksha_string_t event, exports_endpoint_codec_list_part_t *parts) {
  if (veeksha_equals(event, "[DONE]")) {
    add_part(parts, EXPORTS_ENDPOINT_CODEC_PART_DONE);
    return;
  }
  veeksha_json_t json = veeksha_json(event);
  veeksha_json_t choice = {0};
  while (veeksha_next_element(veeksha_member(json, "choices"), &choice)) {
    veeksha_string_t text = veeksha_json_text(veeksha_member(veeksha_member(choice, "delta"), "content"));
    if (text.len > 0) add_part(parts, EXPORTS_ENDPOINT_CODEC_PART_CONTENT)->val.content = text;
    veeksha_json_t finish = veeksha_member(choice, "finish_reason");
    if (veeksha_is_present(finish)) {
      add_part(parts, EXPORTS_ENDPOINT_CODEC_PART_FINISH)->val.finish = veeksha_json_text(finish);
    }
  }
  veeksha_json_t usage = veeksha_member(json, "usage");
  if (veeksha_is_present(usage)) {
    exports_endpoint_codec_usage_t *counts = &add_part(parts, EXPORTS_ENDPOINT_CODEC_PART_USAGE)->val.usage;
    counts->prompt = veeksha_json_u32(veeksha_member(usage, "prompt_tokens"), 0);
    counts->completion = veeksha_json_u32(veeksha_member(usage, "completion_tokens"), 0);
  }
}

// `bytes` holds some events of one answer, one after the other, and `ends` the end of each.
bool exports_endpoint_codec_method_codec_decode(exports_endpoint_codec_codec_t *self, veeksha_list_u8_t *bytes,
                                                veeksha_list_u32_t *ends, exports_endpoint_codec_parts_t *ret,
                                                exports_endpoint_codec_error_t *err) {
  (void)self;
  (void)err;
  *ret = (exports_endpoint_codec_parts_t){0};
  uint32_t begin = 0;
  for (size_t event = 0; event < ends->len; event++) {
    read_event((veeksha_string_t){bytes->ptr + begin, ends->ptr[event] - begin}, &ret->parts);
    *VEEKSHA_PUSH(&ret->ends) = (uint32_t)ret->parts.len;
    begin = ends->ptr[event];
  }
  veeksha_list_u8_free(bytes);
  veeksha_list_u32_free(ends);
  return true;
}
