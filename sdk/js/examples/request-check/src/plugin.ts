/** Good requests: whole answers, which begin quickly for those who pay. */

import {
  type Completion,
  keys,
  milliseconds,
  number,
  RequestCheck,
  string,
  type ValueOf,
} from "veeksha";

const config = keys({
  tier: string("The value of the label `tier` that has the objective.", { default: "paid" }),
  first_chunk_ms: number("Time to its first chunk.", { min: 1, max: 600_000, default: 500 }),
});

/** Depends on the request alone, not on other requests or their order. */
export class QuickForPaid extends RequestCheck<ValueOf<typeof config>> {
  static override readonly config = config;

  isGood(request: Completion): boolean {
    if (request.finishReason === "length" && request.targetOutputTokens === null) return false;
    if (request.labels["tier"] !== this.config.tier) return true;
    const first = request.chunkAt[0];
    if (first === undefined) return false;
    return first - request.intendedAt <= milliseconds(this.config.first_chunk_ms);
  }
}
