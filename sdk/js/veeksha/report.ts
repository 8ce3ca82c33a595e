/** Exceptions of a plugin as errors of the contract, and its log. */

import { write } from "veeksha:plugin/log@0.2.0";

import type { Error as ContractError } from "./contract";
import { PluginError } from "./error";

type Level = "debug" | "info" | "warn" | "error";

/** The place of each line of the bundle: a source and its lines, in runs; set by the build. */
type Lines = { sources: string[]; lines: [line: number, source: number, of: number][] };

let isLive = false;
const early: [Level, string][] = [];

/** Writes to the log of the run. What a module prints while it is built is written at its start. */
export function log(level: Level, message: string): void {
  const text = message.toWellFormed();
  if (isLive) write(level, text);
  else early.push([level, text]);
}

function goLive(): void {
  if (isLive) return;
  isLive = true;
  for (const [level, message] of early.splice(0)) write(level, message);
}

/** Calls the host; what it refuses is thrown as an error of the plugin. */
export function ofHost<T>(call: () => T): T {
  try {
    return call();
  } catch (thrown) {
    const error = ((thrown as { payload?: ContractError })?.payload ?? thrown) as ContractError;
    if (typeof error?.code !== "string") throw thrown;
    throw new PluginError(error.code, error.message, {
      ...(error.hint == null ? {} : { hint: error.hint }),
      ...(error.path == null ? {} : { path: error.path }),
    });
  }
}

/** Returns the source line of a line of the bundle. */
function sourceOf(line: number): string | undefined {
  const map = (globalThis as { __veekshaLines?: Lines }).__veekshaLines;
  const found = map?.lines.findLast(([first]) => first <= line);
  if (map === undefined || found === undefined) return undefined;
  return `${map.sources[found[1]]}:${found[2] + line - found[0]}`;
}

/** Returns the lines of a stack with the places of the sources, without those of this package. */
function places(stack: string): string[] {
  const found = [];
  for (const line of stack.split("\n")) {
    const [, name, at] = /^\s*at (.*?) ?\(?(?:[^():]*):(\d+)(?::\d+)?\)?$/.exec(line) ?? [];
    const source = at === undefined ? undefined : sourceOf(Number(at));
    if (source === undefined || source.startsWith("sdk/")) continue;
    found.push(name && name !== "<anonymous>" ? `${source}, in ${name}` : source);
  }
  return found;
}

function oneLine(text: string): string {
  const line = text.split(/\s+/).join(" ").trim();
  return (line.length <= 1000 ? line : `${line.slice(0, 1000)}…`).toWellFormed();
}

/** Returns an exception as an error of the contract. The stack of an unexpected one is logged. */
function report(thrown: unknown): ContractError {
  const isError = thrown instanceof Error;
  const stack = isError ? places(thrown.stack ?? "") : [];
  const at = stack.length > 0 ? `at ${stack[0]}` : undefined;
  const hints = (own: string | null) => [at, own].filter((part) => part != null).join("; ") || null;
  if (thrown instanceof PluginError) {
    const isOwn = thrown.code !== "sandbox" && thrown.code !== "wrong-value";
    const hint = isOwn ? thrown.hint : hints(thrown.hint);
    return {
      code: thrown.code,
      message: oneLine(thrown.message),
      hint: hint && oneLine(hint),
      path: thrown.path,
    };
  }
  const message = isError ? `${thrown.name}: ${thrown.message}` : `thrown: ${String(thrown)}`;
  log("error", message);
  for (const place of stack) log("error", `    at ${place}`);
  return { code: "exception", message: oneLine(message), hint: hints(null), path: null };
}

/** Calls the plugin; an exception becomes an error of the contract, which ends this call alone. */
export function guard<T>(call: () => T): T {
  goLive();
  try {
    return call();
  } catch (thrown) {
    throw report(thrown);
  }
}
