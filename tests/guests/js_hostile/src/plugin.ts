/**
 * A session generator that misbehaves as its configuration states.
 *
 * Each function returns what the method `session` returns; the tests look for the line numbers of
 * the lines that are marked with their name.
 */

import {
  keys,
  type Random,
  PluginError,
  Request,
  seedOf,
  SessionGenerator,
  string,
  synthetic,
} from "veeksha";

const config = keys({ mode: string("The misbehavior.", { default: "fine" }) });

function good(tokens: any = 8): Request {
  return new Request(0).user(synthetic(1, 16)).outputExactly(tokens);
}

function modes(index: number, random: Random): Record<string, () => any> {
  return {
    fine: () => good(),
    exception: () => JSON.parse("[1"), // line: exception
    key: () => (undefined as any).absent, // line: key
    typed: () => {
      throw new PluginError("no-plan", "there is no plan", { hint: "make one" });
    },
    plain: () => {
      throw "a text";
    },
    text_for_number: () => good("abc"),
    negative: () => good(-1),
    fraction: () => good(2.5),
    none: () => undefined,
    surrogate: () => new Request(0).user("\ud800").outputExactly(1),
    misspelled: () => ({ requests: [good()], labelz: [] }),
    role: () =>
      new Request(0).message({ role: "usr", content: [{ tag: "text", val: "x" }] } as any),
    tag: () => ({
      requests: [{ node: 0, messages: [{ role: "user", content: [{ tag: "txt" }] }], output: {} }],
    }),
    random: () => Math.random(), // line: random
    clock: () => Date.now(), // line: clock
    now: () => new Date(), // line: now
    fetch: () => (globalThis as any).fetch("http://127.0.0.1"), // line: fetch
    literal: () => ({
      requests: [{ node: 0, messages: good().messages, output: { targetTokens: 4 } }],
    }),
    date: () => good(new Date(2020, 1, 1).getFullYear() - 2012),
    words: () => {
      const words = random.words("w", 0, 64);
      if (!words.every((word) => word >= 0) || !words.some((word) => word > 0x7fff_ffff))
        throw new Error(String(words));
      return good();
    },
    print: () => {
      console.log("printed", index, { a: [1] });
      console.warn("to the log");
      return good();
    },
    draws: () => {
      console.log("seeds", [seedOf(""), seedOf("block", [1, 2]), seedOf("mooncake", [0, 46])]);
      const draws = random.stream("lengths");
      for (let row = 0; row < 20; row++) {
        const numbers = [draws.unit(), draws.below(1000), draws.exponential(), draws.normal()];
        console.log("draws", [...numbers, draws.gamma(0.5)]);
      }
      return good();
    },
    loop: () => {
      for (;;);
    },
    memory: () => {
      const kept: unknown[] = [];
      for (;;) kept.push(new Uint8Array(1 << 20));
    },
  };
}

console.log("made while it is built");

export class Hostile extends SessionGenerator<{ mode: string }> {
  static override readonly config = config;

  session(index: number, random: Random): any {
    return modes(index, random)[this.config.mode]!();
  }
}
