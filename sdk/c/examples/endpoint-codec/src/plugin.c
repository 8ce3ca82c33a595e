// An endpoint whose answers are lines of JSON: `{"text": "..."}`, and at the end
// `{"finish": "stop", "prompt": 12, "generated": 34}`.

#include <stdlib.h>

#include "veeksha.h"

// This codec has no configuration.
struct exports_endpoint_codec_codec_t {
  char unused;
};

void exports_endpoint_codec_describe(exports_endpoint_codec_descriptor_t *ret) {
  *ret = veeksha_descriptor("json_lines", "0.1.0", "answers as lines of JSON",
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

// The host fills in the placeholders and sends the request.
void exports_endpoint_codec_method_codec_endpoint(exports_endpoint_codec_codec_t *self,
                                                  exports_endpoint_codec_endpoint_t *ret) {
  (void)self;
  *ret = (exports_endpoint_codec_endpoint_t){
      .path = veeksha_text("generate"),
      .request = veeksha_text("{\"model\": \"{{model}}\", \"prompt\": \"{{prompt}}\", \"limit\": \"{{max_tokens}}\"}"),
      .framing = EXPORTS_ENDPOINT_CODEC_FRAMING_LINES,
  };
}

static void read_line(veeksha_json_t line, exports_endpoint_codec_list_part_t *parts) {
  veeksha_json_t text = veeksha_member(line, "text");
  veeksha_json_t finish = veeksha_member(line, "finish");
  if (veeksha_is_present(text)) {
    exports_endpoint_codec_part_t *part = VEEKSHA_PUSH(parts);
    part->tag = EXPORTS_ENDPOINT_CODEC_PART_CONTENT;
    part->val.content = veeksha_json_text(text);
  }
  if (veeksha_is_present(finish)) {
    exports_endpoint_codec_part_t *part = VEEKSHA_PUSH(parts);
    part->tag = EXPORTS_ENDPOINT_CODEC_PART_FINISH;
    part->val.finish = veeksha_json_text(finish);
    part = VEEKSHA_PUSH(parts);
    part->tag = EXPORTS_ENDPOINT_CODEC_PART_USAGE;
    part->val.usage.prompt = veeksha_json_u32(veeksha_member(line, "prompt"), 0);
    part->val.usage.completion = veeksha_json_u32(veeksha_member(line, "generated"), 0);
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
    veeksha_string_t line = {bytes->ptr + begin, ends->ptr[event] - begin};
    read_line(veeksha_json(line), &ret->parts);
    *VEEKSHA_PUSH(&ret->ends) = (uint32_t)ret->parts.len;
    begin = ends->ptr[event];
  }
  veeksha_list_u8_free(bytes);
  veeksha_list_u32_free(ends);
  return true;
}
