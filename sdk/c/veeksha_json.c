// Reading JSON in place. The host has checked the text, so a mistake in it is an absent value here,
// never a read beyond the text.

#include <stdlib.h>
#include <string.h>

#include "veeksha.h"

static const veeksha_json_t ABSENT = {NULL, NULL};

static const char *skip_space(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
  return at;
}

// Returns the end of the string that begins at a quote, or null.
static const char *string_end(const char *at, const char *end) {
  for (at++; at < end; at++) {
    if (*at == '"') return at + 1;
    if (*at == '\\') at++;
  }
  return NULL;
}

// Returns the end of the value that begins here, or null. Brackets need not be matched by kind: the
// text is valid.
static const char *value_end(const char *at, const char *end) {
  size_t depth = 0;
  while (at < end) {
    if (*at == '"') {
      at = string_end(at, end);
      if (at == NULL) return NULL;
    } else if (*at == '{' || *at == '[') {
      depth++;
      at++;
    } else if (*at == '}' || *at == ']') {
      if (depth == 0) return at;
      depth--;
      at++;
    } else if (depth == 0 && (*at == ',' || *at == ':')) {
      return at;
    } else {
      at++;
      continue;
    }
    if (depth == 0) return at;
  }
  return depth == 0 ? end : NULL;
}

// Returns the value that begins here, without the space around it.
static veeksha_json_t value_at(const char *at, const char *end) {
  at = skip_space(at, end);
  const char *stop = value_end(at, end);
  if (stop == NULL || stop == at) return ABSENT;
  while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\n' || stop[-1] == '\r')) stop--;
  veeksha_json_t value = {at, stop};
  return value;
}

veeksha_json_t veeksha_json(veeksha_string_t text) {
  const char *begin = (const char *)text.ptr;
  return begin == NULL ? ABSENT : value_at(begin, begin + text.len);
}

// Appends a code point as UTF-8.
static uint8_t *append(uint8_t *out, uint32_t point) {
  if (point < 0x80) {
    *out++ = (uint8_t)point;
  } else if (point < 0x800) {
    *out++ = (uint8_t)(0xc0 | point >> 6);
    *out++ = (uint8_t)(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    *out++ = (uint8_t)(0xe0 | point >> 12);
    *out++ = (uint8_t)(0x80 | (point >> 6 & 0x3f));
    *out++ = (uint8_t)(0x80 | (point & 0x3f));
  } else {
    *out++ = (uint8_t)(0xf0 | point >> 18);
    *out++ = (uint8_t)(0x80 | (point >> 12 & 0x3f));
    *out++ = (uint8_t)(0x80 | (point >> 6 & 0x3f));
    *out++ = (uint8_t)(0x80 | (point & 0x3f));
  }
  return out;
}

// Reads the four digits of an escape and moves behind them.
static uint32_t hex4(const char **at, const char *end) {
  uint32_t value = 0;
  for (int i = 0; i < 4 && *at < end; i++, (*at)++) {
    char c = **at;
    uint32_t digit = c >= 'a' ? (uint32_t)(c - 'a') + 10 : c >= 'A' ? (uint32_t)(c - 'A') + 10 : (uint32_t)(c - '0');
    value = value << 4 | (digit & 15);
  }
  return value;
}

// Reads an escape behind its backslash, and moves behind it. A half of a surrogate pair alone is
// U+FFFD, because it has no UTF-8.
static uint8_t *unescape(uint8_t *out, const char **at, const char *end) {
  char c = *(*at)++;
  switch (c) {
    case 'b': *out++ = '\b'; return out;
    case 'f': *out++ = '\f'; return out;
    case 'n': *out++ = '\n'; return out;
    case 'r': *out++ = '\r'; return out;
    case 't': *out++ = '\t'; return out;
    case 'u': break;
    default: *out++ = (uint8_t)c; return out;
  }
  uint32_t point = hex4(at, end);
  if (point >= 0xd800 && point < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
    const char *low_at = *at + 2;
    uint32_t low = hex4(&low_at, end);
    if (low >= 0xdc00 && low < 0xe000) {
      *at = low_at;
      return append(out, 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00));
    }
  }
  return append(out, point >= 0xd800 && point < 0xe000 ? 0xfffd : point);
}

veeksha_string_t veeksha_json_text(veeksha_json_t value) {
  veeksha_string_t text = {NULL, 0};
  if (value.begin == NULL || *value.begin != '"' || value.end - value.begin < 3) return text;
  const char *at = value.begin + 1;
  const char *end = value.end - 1;
  // Unescaped text is never longer.
  text.ptr = malloc((size_t)(end - at));
  if (text.ptr == NULL) abort();
  uint8_t *out = text.ptr;
  while (at < end) {
    if (*at == '\\' && at + 1 < end) {
      at++;
      out = unescape(out, &at, end);
    } else {
      *out++ = (uint8_t)*at++;
    }
  }
  text.len = (size_t)(out - text.ptr);
  return text;
}

veeksha_json_t veeksha_member(veeksha_json_t object, const char *name) {
  veeksha_json_t found = ABSENT;
  if (object.begin == NULL || *object.begin != '{') return found;
  const char *at = object.begin + 1;
  const char *end = object.end - 1;
  for (;;) {
    at = skip_space(at, end);
    if (at >= end || *at != '"') return veeksha_is_present(found) ? found : ABSENT;
    veeksha_json_t key = {at, string_end(at, end)};
    if (key.end == NULL) return ABSENT;
    at = skip_space(key.end, end);
    if (at >= end || *at != ':') return ABSENT;
    veeksha_json_t value = value_at(at + 1, end);
    if (value.begin == NULL) return ABSENT;
    veeksha_string_t key_text = veeksha_json_text(key);
    if (veeksha_equals(key_text, name)) found = value;
    veeksha_string_free(&key_text);
    at = skip_space(value.end, end);
    if (at < end && *at == ',') at++;
  }
}

bool veeksha_next_element(veeksha_json_t array, veeksha_json_t *element) {
  if (array.begin == NULL || *array.begin != '[') return false;
  const char *end = array.end - 1;
  const char *at = element->begin == NULL ? array.begin + 1 : skip_space(element->end, end);
  if (element->begin != NULL) {
    if (at >= end || *at != ',') return false;
    at++;
  }
  *element = value_at(at, end);
  return element->begin != NULL;
}

bool veeksha_is_present(veeksha_json_t value) { return value.begin != NULL && *value.begin != 'n'; }

double veeksha_json_number(veeksha_json_t value, double otherwise) {
  char digits[64];
  if (value.begin == NULL || (*value.begin != '-' && (*value.begin < '0' || *value.begin > '9'))) return otherwise;
  // `strtod` needs an end. Longer numbers have digits that a double cannot hold.
  size_t length = (size_t)(value.end - value.begin);
  if (length >= sizeof digits) return otherwise;
  memcpy(digits, value.begin, length);
  digits[length] = 0;
  return strtod(digits, NULL);
}

uint64_t veeksha_json_u64(veeksha_json_t value, uint64_t otherwise) {
  double number = veeksha_json_number(value, -1.0);
  return number >= 0.0 && number < 0x1p53 && number == (double)(uint64_t)number ? (uint64_t)number : otherwise;
}

uint32_t veeksha_json_u32(veeksha_json_t value, uint32_t otherwise) {
  uint64_t number = veeksha_json_u64(value, UINT64_MAX);
  return number <= UINT32_MAX ? (uint32_t)number : otherwise;
}

bool veeksha_json_bool(veeksha_json_t value, bool otherwise) {
  if (value.begin == NULL) return otherwise;
  return *value.begin == 't' ? true : *value.begin == 'f' ? false : otherwise;
}
