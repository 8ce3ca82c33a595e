/** Arrivals whose rate rises and falls, like that of users over a day. */

import {
  ArrivalProcess,
  keys,
  number,
  PluginError,
  type Random,
  seconds,
  type ValueOf,
} from "veeksha";

const config = keys({
  lowest: number("Sessions per second at the lowest.", { min: 0.001, max: 10_000, default: 1 }),
  highest: number("Sessions per second at the peak.", { min: 0.001, max: 10_000, default: 5 }),
  period_seconds: number("Seconds between two peaks.", { min: 1, max: 1_000_000, default: 60 }),
});

/** A Poisson process with a sinusoidal rate, by thinning (Lewis and Shedler, 1979). */
export class DailyWave extends ArrivalProcess<ValueOf<typeof config>> {
  static override readonly config = config;
  private time = 0;

  override setup(): void {
    const { lowest, highest } = this.config;
    if (highest < lowest) {
      throw PluginError.config("/highest", `it is below \`lowest\`, which is ${lowest}`);
    }
  }

  next(_session: number, random: Random): number {
    const gaps = random.stream("gaps");
    for (;;) {
      this.time += gaps.exponential() / this.config.highest;
      if (gaps.chance(this.rate() / this.config.highest)) return seconds(this.time);
    }
  }

  /** The rate at the current time; the first peak is half a period after the start. */
  private rate(): number {
    const { lowest, highest, period_seconds } = this.config;
    const wave = 0.5 - 0.5 * Math.cos((2 * Math.PI * this.time) / period_seconds);
    return lowest + (highest - lowest) * wave;
  }
}
