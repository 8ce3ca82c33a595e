/** The time for which answers paused. */

import {
  type Completion,
  type Definition,
  keys,
  Metric,
  milliseconds,
  number,
  type Samples,
  type ValueOf,
} from "veeksha";

const config = keys({
  longer_than_ms: number("A gap longer than this counts.", { min: 0, max: 60_000, default: 250 }),
});

/** The gaps between two chunks of an answer that are longer than a reader notices. */
export class Stalls extends Metric<ValueOf<typeof config>> {
  static override readonly config = config;
  private stalledRequests = 0;

  definitions(): Definition[] {
    return [
      {
        name: "stalled",
        unit: "s",
        better: "less",
        summary: "sum of the long gaps between chunks",
      },
      {
        name: "stalled_requests",
        unit: "1",
        better: "less",
        summary: "requests with a long gap, in total",
      },
    ];
  }

  observe(request: Completion, samples: Samples): void {
    const at = request.chunkAt;
    // A request without chunks has no gaps: absent is not 0.
    if (!request.isOk || at.length === 0) return;
    const longest = milliseconds(this.config.longer_than_ms);
    let stalled = 0;
    for (let i = 1; i < at.length; i++) {
      const gap = at[i]! - at[i - 1]!;
      if (gap > longest) stalled += gap;
    }
    samples.add("stalled", stalled / 1e9);
    if (stalled > 0) this.stalledRequests += 1;
  }

  override finish(samples: Samples): void {
    samples.addOfRun("stalled_requests", this.stalledRequests);
  }
}
