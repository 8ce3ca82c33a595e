/** An objective that a line such as `p99(ttfc) < 500ms` cannot state: tiers in their order. */

import {
  atMost,
  keys,
  list,
  number,
  PluginError,
  type Results,
  SloCheck,
  string,
  type ValueOf,
  type Verdict,
} from "veeksha";

const config = keys({
  tiers: list(string("A value of the label `tier`."), "The tiers, the best first.", {
    default: ["paid", "free"],
  }),
  percent: number("The percentile that is compared.", { min: 0, max: 100, default: 90 }),
});

/** No tier waits longer for its first chunk than the one below it. */
export class OrderedTiers extends SloCheck<ValueOf<typeof config>> {
  static override readonly config = config;

  override setup(): void {
    if (this.config.tiers.length < 2) {
      throw PluginError.config("/tiers", "an order has at least two tiers");
    }
  }

  check(results: Results): Verdict[] {
    const { tiers } = this.config;
    return tiers.slice(1).map((worse, place) => {
      const better = tiers[place]!;
      const limit = this.firstChunk(results, worse);
      if (limit === null) {
        throw new PluginError("no-samples", `no request of the tier ${worse} was answered`);
      }
      return atMost(`${better} before ${worse}`, this.firstChunk(results, better), limit);
    });
  }

  private firstChunk(results: Results, tier: string): number | null {
    return results.percentile("ttfc", this.config.percent, { tier });
  }
}
