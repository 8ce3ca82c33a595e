/** Tokens of the target's tokenizer. A plugin that imports this module asks for `tokens`. */

import {
  count as countTokens,
  encode as encodeText,
  vocabulary as vocabularySize,
} from "veeksha:plugin/tokens@0.2.0";

/** Returns the number of tokens of a text. */
export function count(text: string): number {
  return countTokens(text) >>> 0;
}

/** Returns the token ids of a text. */
export function encode(text: string): number[] {
  return Array.from(encodeText(text), (id) => id >>> 0);
}

/** Returns the number of token ids: each is below it. */
export function vocabulary(): number {
  return vocabularySize() >>> 0;
}
