/** Messages and their segments. */

import type * as contract from "./contract";

export type { MediaKind, Message, Role, Segment, ToolCall, ToolChoice, Tools } from "./contract";

type Segment = contract.Segment;

/** Anything that a message can consist of: a string is text that is sent verbatim. */
export type Content = string | Segment | readonly (string | Segment)[];

/** Returns text that is sent verbatim. Where a segment is expected, a string does as well. */
export function text(value: string): Segment {
  return { tag: "text", val: value };
}

/** Returns a seed of 64 bits: a non-negative integer, or its two halves. */
function seed(value: number | contract.Seed): contract.Seed {
  if (typeof value !== "number") return value;
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new RangeError(`seed: expected an integer from 0 to 2^53 - 1, got ${value}`);
  }
  return { high: Math.floor(value / 2 ** 32), low: value % 2 ** 32 };
}

/**
 * Returns text that the host generates: exactly `tokens` tokens.
 *
 * It depends on the seed, the length and the target's tokenizer alone. Texts of one seed share
 * their beginning.
 */
export function synthetic(of: number | contract.Seed, tokens: number): Segment {
  return { tag: "synthetic", val: { seed: seed(of), tokens } };
}

/**
 * Returns a seed that depends on a scope and some numbers, and on nothing else.
 *
 * Equal arguments give equal text in every run. It is that of the SDKs of Rust and Python: FNV-1a
 * over the bytes, finished as in SplitMix64.
 */
export function seedOf(scope: string, numbers: readonly number[] = []): contract.Seed {
  const bytes = utf8(scope);
  for (const number of numbers) {
    bytes.push(0xff);
    for (let place = 0n; place < 64n; place += 8n)
      bytes.push(Number((BigInt(number) >> place) & 0xffn));
  }
  const word = (value: bigint) => BigInt.asUintN(64, value);
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = word((hash ^ BigInt(byte)) * 0x100000001b3n);
  hash = word((hash ^ (hash >> 30n)) * 0xbf58476d1ce4e5b9n);
  hash = word((hash ^ (hash >> 27n)) * 0x94d049bb133111ebn);
  hash ^= hash >> 31n;
  return { high: Number(hash >> 32n), low: Number(hash & 0xffffffffn) };
}

function utf8(value: string): number[] {
  const escaped = encodeURIComponent(value).matchAll(/%([0-9A-F]{2})|(.)/g);
  return Array.from(escaped, ([, hex, letter]) =>
    hex ? parseInt(hex, 16) : letter!.charCodeAt(0),
  );
}

/** Returns an image: the name of a granted file, or a URL. */
export function image(source: string): Segment {
  return { tag: "media", val: { kind: "image", source } };
}

/** Returns a sound: the name of a granted file, or a URL. */
export function audio(source: string): Segment {
  return { tag: "media", val: { kind: "audio", source } };
}

/** Returns a video: the name of a granted file, or a URL. */
export function video(source: string): Segment {
  return { tag: "media", val: { kind: "video", source } };
}

/** Returns token ids of the target's vocabulary. Such a request has no other content. */
export function tokenIds(ids: readonly number[]): Segment {
  return { tag: "token-ids", val: [...ids] };
}

/** Returns the text that a tool run of the session returns. The request must wait for its end. */
export function resultOf(run: number | { node: number }): Segment {
  return { tag: "result-of", val: typeof run === "number" ? run : run.node };
}

/** Returns definitions of `count` functions whose JSON text has exactly `tokens` tokens. */
export function syntheticTools(
  of: number | contract.Seed,
  count: number,
  tokens: number,
): contract.Tools {
  return { tag: "synthetic", val: { seed: seed(of), count, tokens } };
}

/** Returns contents as segments, joined in their order. */
export function segments(...contents: readonly Content[]): Segment[] {
  const pieces = contents.flatMap((content): readonly (string | Segment)[] =>
    Array.isArray(content) ? content : [content as string | Segment],
  );
  return pieces.map((piece) => (typeof piece === "string" ? text(piece) : piece));
}

/** Returns a message of the assistant, with the calls and the reasoning that it has. */
export function assistant(
  content: Content,
  more: { calls?: contract.ToolCall[]; reasoning?: Content } = {},
): contract.Message {
  const reasoning =
    more.reasoning === undefined ? null : { content: segments(more.reasoning), signature: null };
  return {
    role: "assistant",
    content: segments(content),
    toolCallId: null,
    toolCalls: more.calls ?? [],
    reasoning,
  };
}
