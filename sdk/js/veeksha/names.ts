/** Names that were misspelled, and values in messages. */

/** Returns the known name that a typing error may have been meant for: a third of it differs. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Infinity;
  for (const candidate of known) {
    const changes = distance(name, candidate);
    if (changes < least) [best, least] = [candidate, changes];
  }
  if (best === undefined) return undefined;
  return least * 3 > Math.max(best.length, name.length) + 1 ? undefined : best;
}

/** Returns the number of insertions, deletions, changes and swaps between two names. */
function distance(left: string, right: string): number {
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, place) => place);
  for (let i = 1; i <= left.length; i++) {
    const last = row;
    row = [i];
    for (let j = 1; j <= right.length; j++) {
      const isChange = left[i - 1] !== right[j - 1];
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + Number(isChange));
      if (i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1]) {
        cost = Math.min(cost, before[j - 2]! + 1);
      }
      row.push(cost);
    }
    before = last;
  }
  return row[right.length]!;
}

/** Returns a value as a message shows it. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "string")
    return value.length <= 60 ? `"${value}"` : `"${value.slice(0, 60)}…"`;
  if (typeof value === "function") return `the function ${value.name || "without a name"}`;
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object")
    return value.constructor?.name === "Object" ? "an object" : `a ${value.constructor?.name}`;
  return String(value);
}
