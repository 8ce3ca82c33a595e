/** Short questions about one long document, which all sessions share. */

import {
  integer,
  keys,
  type Random,
  Request,
  seconds,
  Session,
  SessionGenerator,
  synthetic,
  type ValueOf,
} from "veeksha";

const config = keys({
  document_tokens: integer("Tokens of the document.", { min: 1, max: 1_000_000, default: 4_000 }),
  questions: integer("Questions of a session.", { min: 1, max: 100, default: 3 }),
});

/** Sessions that ask about the same document: a prefix cache serves all but the first. */
export class SharedDocument extends SessionGenerator<ValueOf<typeof config>> {
  static override readonly config = config;

  session(index: number, random: Random): Session {
    const lengths = random.stream("lengths");
    const waits = random.stream("waits");
    const requests: Request[] = [];
    for (let turn = 0; turn < this.config.questions; turn++) {
      const request = new Request(turn).outputExactly(64);
      if (turn === 0) request.system(synthetic(1, this.config.document_tokens));
      else request.history(turn - 1).wait(seconds(waits.exponential(2)));
      // Each question has its own seed, so no two sessions ask the same.
      const seed = 2 + index * this.config.questions + turn;
      requests.push(request.user(synthetic(seed, lengths.between(20, 60))));
    }
    return new Session(...requests).label("workload", "shared_document");
  }
}
