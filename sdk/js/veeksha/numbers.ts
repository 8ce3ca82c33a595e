/** Times, which are whole nanoseconds everywhere in the contract. */

/** Returns seconds as nanoseconds. */
export function seconds(time: number): number {
  return Math.round(time * 1e9);
}

/** Returns milliseconds as nanoseconds. */
export function milliseconds(time: number): number {
  return Math.round(time * 1e6);
}
