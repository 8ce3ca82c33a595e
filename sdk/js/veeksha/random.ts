/**
 * Randomness without state.
 *
 * Every number is a function of (the run's seed, session, stream, position), so it does not depend
 * on the order of calls, the number of threads or earlier sessions. The draws are those of the SDKs
 * of Rust and Python and of the host: the same words give the same numbers in every language.
 */

import { words as hostWords } from "veeksha:plugin/random@0.2.0";

/** The session whose streams belong to the run as a whole: no workload has that many sessions. */
const RUN = Number.MAX_SAFE_INTEGER;
const FIRST_BLOCK = 8;
const LARGEST_BLOCK = 256;
const WORD = 2 ** 32;

/** The random streams of one session. Streams with different names are independent. */
export class Random {
  constructor(readonly session: number) {}

  /** Returns a stream of this session, from its beginning. */
  stream(name: string): Draws {
    return new Draws(this.session, name);
  }

  /** Returns a stream of the whole run, the same in every session, from its beginning. */
  sharedStream(name: string): Draws {
    return new Draws(RUN, name);
  }

  /** Returns the words `first .. first + count` of a stream: integers of 32 bits. */
  words(stream: string, first: number, count: number): number[] {
    return words(this.session, stream, first, count);
  }
}

function words(session: number, stream: string, first: number, count: number): number[] {
  return Array.from(hostWords(session, stream, first, count), (word) => word >>> 0);
}

/** Draws numbers from one stream, in order. The stream repeats after 2^32 words. */
export class Draws {
  private block: number[] = [];
  private used = 0;
  private next = 0;
  private size = FIRST_BLOCK;

  constructor(
    private readonly session: number,
    private readonly name: string,
  ) {}

  /** Returns the next 32 bits. */
  word(): number {
    if (this.used === this.block.length) {
      this.block = words(this.session, this.name, this.next, this.size);
      this.next = (this.next + this.size) % WORD;
      this.size = Math.min(this.size * 2, LARGEST_BLOCK);
      this.used = 0;
    }
    return this.block[this.used++]!;
  }

  /** Returns a number that is uniform on [0, 1), with 53 bits. The first word is the upper half. */
  unit(): number {
    const high = this.word();
    const low = this.word();
    return (high * 2 ** 21 + (low >>> 11)) * 2 ** -53;
  }

  /** Returns a number that is uniform on (0, 1], as a logarithm can take it. */
  unitOpen(): number {
    return 1 - this.unit();
  }

  /**
   * Returns an integer that is uniform on `0 .. bound - 1`; 0 for a bound of 0.
   *
   * Without bias (Lemire's multiply and reject). The bound is at most 2^32.
   */
  below(bound: number): number {
    if (!Number.isInteger(bound) || bound < 0 || bound > WORD) {
      throw new RangeError(`bound: expected an integer from 0 to 2^32, got ${bound}`);
    }
    if (bound === 0) return 0;
    const threshold = WORD % bound;
    for (;;) {
      // The product has up to 64 bits: its halves are computed separately.
      const word = this.word();
      const low = Math.imul(word, bound) >>> 0;
      if (low >= threshold) return Number((BigInt(word) * BigInt(bound)) >> 32n);
    }
  }

  /** Returns an integer that is uniform on `low .. high`; `low` if `high` is below it. */
  between(low: number, high: number): number {
    return low + this.below(Math.max(high - low, 0) + 1);
  }

  /** Returns a number that is uniform on [low, high). */
  uniform(low: number, high: number): number {
    return low + (high - low) * this.unit();
  }

  /** Returns true with a probability. */
  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  /** Returns one of the values, each with the same probability. */
  choice<T>(values: readonly T[]): T {
    if (values.length === 0) throw new RangeError("choice: there is nothing to choose from");
    return values[this.below(values.length)]!;
  }

  /** Returns an exponential number with this mean: −ln U, not clipped. */
  exponential(mean = 1): number {
    return -Math.log(this.unitOpen()) * mean;
  }

  /**
   * Returns a normal number: √(−2 ln U₁) · cos(2π U₂) (Box and Muller).
   *
   * The second number of the pair is not kept, so that a draw takes the same words whatever was
   * drawn before.
   */
  normal(mean = 0, deviation = 1): number {
    const radius = Math.sqrt(-2 * Math.log(this.unitOpen()));
    return mean + deviation * (radius * Math.cos(2 * Math.PI * this.unit()));
  }

  /** Returns a number whose logarithm is normal with mean `mu` and deviation `sigma`. */
  lognormal(mu: number, sigma: number): number {
    return Math.exp(this.normal(mu, sigma));
  }

  /**
   * Returns a gamma number (Marsaglia and Tsang, 2000): its mean is shape · scale.
   *
   * Shapes below 1 are drawn as Gamma(shape + 1) · U^(1/shape).
   */
  gamma(shape: number, scale = 1): number {
    if (!(shape > 0)) throw new RangeError(`shape: expected a positive number, got ${shape}`);
    if (shape < 1) {
      // The order of the draws is the host's: the boost comes first.
      const boost = this.unitOpen() ** (1 / shape);
      return this.gamma(shape + 1, scale) * boost;
    }
    const d = shape - 1 / 3;
    const c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = this.normal();
      const v = (1 + c * x) ** 3;
      if (v <= 0) continue;
      const logU = Math.log(this.unitOpen());
      if (logU < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v * scale;
    }
  }
}
