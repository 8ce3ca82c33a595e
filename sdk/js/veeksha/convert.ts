/**
 * Values between the contract and the plugin.
 *
 * The engine reads numbers of 32 bits as signed ones, and a wrong value that it is given ends the
 * instance without a place. `lift` corrects what the host passes; `lower` checks what the plugin
 * returns, and names the member that is wrong. Both are made once of the types of the contract.
 */

import { PluginError } from "./error";
import { nearest, show } from "./names";
import { type Type, TYPES } from "./contract";

/** Corrects a value of the host. */
export type Lift<T> = (value: T) => T;
/** Returns a value of the plugin for the engine. `path` is its place. */
type Lower = (value: unknown, path: string) => unknown;

const LARGEST: Record<string, number> = {
  u8: 0xff,
  u16: 0xffff,
  u32: 0xffff_ffff,
  u64: Number.MAX_SAFE_INTEGER,
};

const lifts = new Map<string, Lift<any> | null>();
const lowers = new Map<string, Lower>();

/** Returns the correction of a type; null for types that need none. */
function liftOf(type: Type): Lift<any> | null {
  if (typeof type === "string") {
    if (type === "u32") return (value: number) => value >>> 0;
    if (!type.startsWith("#")) return null;
    if (!lifts.has(type)) {
      // The entry ends the recursion of a type that contains itself.
      lifts.set(type, null);
      lifts.set(type, liftOf(TYPES[type.slice(1)]!));
    }
    return lifts.get(type)!;
  }
  if ("list" in type) {
    const item = liftOf(type.list);
    return (
      item &&
      ((values: unknown[]) => {
        for (let i = 0; i < values.length; i++) values[i] = item(values[i]);
        return values;
      })
    );
  }
  if ("option" in type) {
    const inner = liftOf(type.option);
    return inner && ((value: unknown) => (value == null ? null : inner(value)));
  }
  if ("record" in type) {
    const members = Object.entries(type.record)
      .map(([name, of]) => [name, liftOf(of)] as const)
      .filter(([, lift]) => lift !== null);
    if (members.length === 0) return null;
    return (record: Record<string, unknown>) => {
      for (const [name, lift] of members) record[name] = lift!(record[name]);
      return record;
    };
  }
  // The host passes no variants and no tuples with numbers of 32 bits.
  return null;
}

/** Returns the correction of a named type of the contract. */
export function lift<T>(name: string): Lift<T> {
  return liftOf(`#${name}`) ?? ((value: T) => value);
}

function wrong(path: string, expected: string, value: unknown, hint?: string): PluginError {
  const found =
    value === undefined ? "undefined; did you forget `return`, or this member?" : show(value);
  return new PluginError(
    "wrong-value",
    `${path}: expected ${expected}, got ${found}`,
    hint === undefined ? {} : { hint },
  );
}

function integer(largest: number): Lower {
  return (value, path) => {
    const number = typeof value === "bigint" ? Number(value) : value;
    if (typeof number === "number" && Number.isInteger(number) && number >= 0 && number <= largest)
      return number;
    const isFraction = typeof number === "number" && !Number.isInteger(number);
    const hint = isFraction
      ? "Math.round makes an integer; seconds() and milliseconds() return one"
      : undefined;
    throw wrong(path, `an integer from 0 to ${largest}`, value, hint);
  };
}

function primitive(type: string): Lower {
  const largest = LARGEST[type];
  if (largest !== undefined) return integer(largest);
  switch (type) {
    case "bool":
      return (value, path) => {
        if (typeof value === "boolean") return value;
        throw wrong(path, "true or false", value);
      };
    case "f64":
      return (value, path) => {
        if (typeof value === "number") return value;
        throw wrong(path, "a number", value);
      };
    case "string":
      return (value, path) => {
        if (typeof value !== "string") throw wrong(path, "a string", value);
        if (isWellFormed(value)) return value;
        throw wrong(
          path,
          "text that can be encoded as UTF-8",
          value,
          "it contains half of a surrogate pair",
        );
      };
    default:
      throw new Error(`the contract has no type ${type}`);
  }
}

function isWellFormed(text: string): boolean {
  return !/[\uD800-\uDFFF]/.test(text) || text.isWellFormed();
}

/** The value of a member that is left out: nothing, of the types that can be nothing. */
function nothing(type: Type): unknown {
  if (type === "bool") return false;
  // Waits and delays.
  if (type === "u64") return 0;
  if (typeof type !== "object") return undefined;
  if ("option" in type) return null;
  return "list" in type ? [] : undefined;
}

function record(members: Record<string, Type>): Lower {
  const names = Object.keys(members);
  const known = new Set(names);
  const fields = names.map(
    (name) => [name, lowerOf(members[name]!), nothing(members[name]!)] as const,
  );
  return (value, path) => {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw wrong(path, "an object", value);
    const given = value as Record<string, unknown>;
    for (const name of Object.keys(given)) {
      if (known.has(name)) continue;
      const best = nearest(name, names);
      const hint =
        best === undefined ? `known members: ${names.join(", ")}` : `did you mean \`${best}\`?`;
      throw new PluginError("wrong-value", `${path}: unknown member \`${name}\``, { hint });
    }
    const result: Record<string, unknown> = {};
    for (const [name, lower, absent] of fields) {
      result[name] = lower(given[name] ?? absent, `${path}.${name}`);
    }
    return result;
  };
}

function variant(cases: Record<string, Type | null>): Lower {
  const names = Object.keys(cases);
  const lower = new Map(
    names.map((name) => [name, cases[name] === null ? null : lowerOf(cases[name]!)]),
  );
  const expected = `an object whose \`tag\` is one of ${names.join(", ")}`;
  return (value, path) => {
    const given = (typeof value === "object" && value !== null ? value : {}) as {
      tag?: unknown;
      val?: unknown;
    };
    const tag = given.tag;
    if (typeof tag !== "string" || !lower.has(tag)) throw wrong(path, expected, value);
    const content = lower.get(tag);
    return content ? { tag, val: content(given.val, `${path}.val`) } : { tag };
  };
}

function choice(names: readonly string[]): Lower {
  const known = new Set<unknown>(names);
  return (value, path) => {
    if (known.has(value)) return value;
    const best = typeof value === "string" ? nearest(value, names) : undefined;
    throw wrong(path, `one of ${names.join(", ")}`, value, best && `did you mean \`${best}\`?`);
  };
}

function list(type: Type): Lower {
  const item = lowerOf(type);
  return (value, path) => {
    if (!Array.isArray(value) && !(value instanceof Uint8Array))
      throw wrong(path, "an array", value);
    return Array.from(value, (element, place) => item(element, `${path}[${place}]`));
  };
}

function tuple(types: readonly Type[]): Lower {
  const items = types.map(lowerOf);
  return (value, path) => {
    if (!Array.isArray(value) || value.length !== items.length) {
      throw wrong(path, `an array of ${items.length} values`, value);
    }
    return items.map((item, place) => item(value[place], `${path}[${place}]`));
  };
}

function lowerOf(type: Type): Lower {
  if (typeof type === "string") {
    let lower = lowers.get(type);
    if (lower === undefined) {
      lower = type.startsWith("#") ? lowerOf(TYPES[type.slice(1)]!) : primitive(type);
      lowers.set(type, lower);
    }
    return lower;
  }
  if ("list" in type) return list(type.list);
  if ("option" in type) {
    const inner = lowerOf(type.option);
    return (value, path) => (value == null ? null : inner(value, path));
  }
  if ("record" in type) return record(type.record);
  if ("variant" in type) return variant(type.variant);
  if ("tuple" in type) return tuple(type.tuple);
  return choice(type.enum);
}

/** Returns a checked copy of a value of the plugin. `name` is the method that returned it. */
export function lower<T>(type: Type, value: unknown, name: string): T {
  return lowerOf(type)(value, name) as T;
}
