/** Functions of JavaScript that a plugin does not have, and their replacements. */

import { SandboxError } from "./error";
import { log } from "./report";

const CLOCK =
  "the results of a plugin must not depend on the time; responses and requests have times";
const RANDOM = 'use the `random` that the plugin is given: random.stream("name").unit()';
const NETWORK = "the host sends the requests; return them";
const TIMERS =
  "a plugin returns at once; `wait` of a request and `ToolRun.timer` make the host wait";

function refuse(name: string, what: string, hint: string): () => never {
  return () => {
    throw new SandboxError(`${name}: plugins have no ${what} in the sandbox`, hint);
  };
}

function replaceDate(): void {
  const now = refuse("Date.now", "clock", CLOCK);
  const current = refuse("Date", "clock", CLOCK);
  const Original = Date;
  globalThis.Date = new Proxy(Original, {
    // A date of given parts does not depend on the time.
    construct: (target, parts, made) =>
      parts.length === 0 ? current() : Reflect.construct(target, parts, made),
    apply: current,
    get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
  });
}

function replaceConsole(): void {
  const levels = {
    debug: "debug",
    log: "info",
    info: "info",
    warn: "warn",
    error: "error",
  } as const;
  const writers = Object.entries(levels).map(([name, level]) => [
    name,
    (...values: unknown[]) => log(level, values.map(printed).join(" ")),
  ]);
  Object.assign(globalThis, { console: Object.fromEntries(writers) });
}

function printed(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (typeof value === "object" && value !== null) {
    try {
      return (
        JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? `${inner}n` : inner)) ??
        String(value)
      );
    } catch {
      return String(value);
    }
  }
  return String(value);
}

replaceDate();
replaceConsole();
Math.random = refuse("Math.random", "randomness", RANDOM);
Object.assign(globalThis, {
  performance: { now: refuse("performance.now", "clock", CLOCK) },
  fetch: refuse("fetch", "network", NETWORK),
  setTimeout: refuse("setTimeout", "timers", TIMERS),
  setInterval: refuse("setInterval", "timers", TIMERS),
});
