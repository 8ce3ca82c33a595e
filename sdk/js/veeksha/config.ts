/**
 * The configuration of a plugin: a description of its keys gives its type, its JSON schema and its
 * checks.
 *
 * ```ts
 * const config = keys({
 *   plan_tokens: integer("Tokens of the task.", { min: 1, max: 100_000, default: 200 }),
 *   tiers: list(text("A tier."), "The tiers, the best first.", { default: ["paid", "free"] }),
 * });
 * type Config = ValueOf<typeof config>;
 * ```
 */

import { PluginError } from "./error";
import { nearest, show } from "./names";

type Json = Record<string, unknown>;

/** The description of a value. */
export interface Value<T> {
  /** Its JSON schema, with the default. */
  readonly schema: Json;
  /** True if the key may be left out; it is then the default of the schema. */
  readonly isOptional: boolean;
  /** Returns a checked value. `path` is its JSON pointer. */
  read(value: unknown, path: string): T;
}

/** The type that a description gives. */
export type ValueOf<V> = V extends Value<infer T> ? T : never;

interface Default<T> {
  /** The value of a key that is left out; without it, the key is required. */
  default?: T;
}

interface Range {
  /** The smallest allowed number. */
  min?: number;
  /** The largest allowed number. */
  max?: number;
}

function refuse(expected: string, value: unknown, path: string): PluginError {
  const found = Array.isArray(value)
    ? "a list"
    : typeof value === "string"
      ? `the text ${show(value)}`
      : show(value);
  return PluginError.config(path, `expected ${expected}, found ${found}`);
}

function describe<T>(
  schema: Json,
  description: string,
  options: Default<T>,
  read: Value<T>["read"],
): Value<T> {
  const isOptional = options.default !== undefined;
  const extra = isOptional ? { description, default: options.default } : { description };
  return { schema: { ...schema, ...extra }, isOptional, read };
}

function numeric(
  noun: string,
  isRight: (value: number) => boolean,
  range: Range,
): Value<number>["read"] {
  const { min, max } = range;
  const limits = [
    [undefined, ""],
    [min !== undefined && max === undefined, ` of at least ${min}`],
    [min === undefined && max !== undefined, ` of at most ${max}`],
    [min !== undefined && max !== undefined, ` from ${min} to ${max}`],
  ].find(([holds]) => holds === true);
  const expected = `${noun}${limits?.[1] ?? ""}`;
  return (value, path) => {
    const fits =
      typeof value === "number" &&
      isRight(value) &&
      value >= (min ?? -Infinity) &&
      value <= (max ?? Infinity);
    if (!fits) throw refuse(expected, value, path);
    return value;
  };
}

function limits(range: Range): Json {
  return {
    ...(range.min === undefined ? {} : { minimum: range.min }),
    ...(range.max === undefined ? {} : { maximum: range.max }),
  };
}

/** Describes an integer. */
export function integer(description: string, options: Range & Default<number> = {}): Value<number> {
  const read = numeric("an integer", Number.isSafeInteger, options);
  return describe({ type: "integer", ...limits(options) }, description, options, read);
}

/** Describes a number. */
export function number(description: string, options: Range & Default<number> = {}): Value<number> {
  const read = numeric("a number", Number.isFinite, options);
  return describe({ type: "number", ...limits(options) }, description, options, read);
}

/** Describes a text; `oneOf` lists those that are allowed. */
export function string<const T extends string = string>(
  description: string,
  options: Default<T> & { oneOf?: readonly T[] } = {},
): Value<T> {
  const { oneOf } = options;
  return describe(
    { type: "string", ...(oneOf ? { enum: oneOf } : {}) },
    description,
    options,
    (value, path) => {
      if (typeof value === "string" && (!oneOf || (oneOf as readonly string[]).includes(value)))
        return value as T;
      throw refuse(
        oneOf ? `one of ${oneOf.map((known) => JSON.stringify(known)).join(", ")}` : "a text",
        value,
        path,
      );
    },
  );
}

/** Describes `true` or `false`. */
export function truth(description: string, options: Default<boolean> = {}): Value<boolean> {
  return describe({ type: "boolean" }, description, options, (value, path) => {
    if (typeof value === "boolean") return value;
    throw refuse("true or false", value, path);
  });
}

/** Describes a list of values. */
export function list<T>(
  item: Value<T>,
  description: string,
  options: Default<T[]> = {},
): Value<T[]> {
  return describe({ type: "array", items: item.schema }, description, options, (value, path) => {
    if (!Array.isArray(value)) throw refuse("a list", value, path);
    return value.map((element, place) => item.read(element, `${path}/${place}`));
  });
}

/** Describes an object with any keys. */
export function map<T>(
  item: Value<T>,
  description: string,
  options: Default<Record<string, T>> = {},
): Value<Record<string, T>> {
  return describe(
    { type: "object", additionalProperties: item.schema },
    description,
    options,
    (value, path) => {
      if (typeof value !== "object" || value === null || Array.isArray(value))
        throw refuse("an object", value, path);
      return Object.fromEntries(
        Object.entries(value).map(([key, element]) => [
          key,
          item.read(element, pointer(path, key)),
        ]),
      );
    },
  );
}

/** Describes a key that may be left out, or be null: it is then null. */
export function optional<T>(inner: Value<T>): Value<T | null> {
  const schema = { anyOf: [inner.schema, { type: "null" }], default: null };
  return {
    schema,
    isOptional: true,
    read: (value, path) => (value == null ? null : inner.read(value, path)),
  };
}

type Members = Record<string, Value<any>>;

/** Describes an object with these keys. */
export function keys<M extends Members>(
  members: M,
  description?: string,
): Value<{ [K in keyof M]: ValueOf<M[K]> }> {
  const names = Object.keys(members);
  const required = names.filter((name) => !members[name]!.isOptional);
  const schema = {
    type: "object",
    ...(description === undefined ? {} : { description }),
    properties: Object.fromEntries(names.map((name) => [name, members[name]!.schema])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
  const read = (value: unknown, path: string) => {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw refuse("an object", value, path);
    const given = value as Json;
    for (const name of Object.keys(given))
      if (!names.includes(name)) throw unknown(name, names, path);
    const found = names.map((name) => [name, member(name, members[name]!, given, path)]);
    return Object.fromEntries(found) as { [K in keyof M]: ValueOf<M[K]> };
  };
  return { schema, isOptional: false, read };
}

function member(name: string, of: Value<unknown>, given: Json, path: string): unknown {
  if (given[name] === undefined && !of.isOptional)
    throw PluginError.config(path, `the key \`${name}\` is missing`);
  const value = given[name] === undefined ? structuredCopy(of.schema.default) : given[name];
  return of.read(value, pointer(path, name));
}

/** A default may be a list or an object, which a plugin could change. */
function structuredCopy(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

function pointer(path: string, key: string): string {
  return `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

function unknown(name: string, names: string[], path: string): PluginError {
  const listed =
    names.length > 0
      ? `known here: ${names.map((known) => `\`${known}\``).join(", ")}`
      : "none is known here";
  const best = nearest(name, names);
  const message = `unknown key \`${name}\`; ${listed}`;
  return PluginError.config(pointer(path, name), message, best && `did you mean \`${best}\`?`);
}

/** Returns the JSON schema (draft 2020-12) of a configuration, as text. */
export function schemaText(config: Value<unknown>): string {
  return JSON.stringify({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Config",
    ...config.schema,
  });
}

/** Returns the configuration of a JSON text. */
export function fromJson<T>(config: Value<T>, text: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw PluginError.config("", `the configuration is not JSON: ${(error as Error).message}`);
  }
  return config.read(value ?? {}, "");
}
