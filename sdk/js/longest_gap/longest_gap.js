// A metric in JavaScript: the longest gap between two chunks of an answer.
//
// The host hands requests over as a table: `batch.chunkAt` holds the chunks of all requests one after the other, and
// `batch.chunksEnd[i]` is the number of those of request i and of the requests before it. Times are nanoseconds.

const SCHEMA = { type: "object", additionalProperties: false, properties: {} };

class Collector {
  static open(_config) {
    return new Collector();
  }

  definitions() {
    return [{ name: "longest_gap", unit: "s", better: "less", summary: "longest gap between two chunks of an answer" }];
  }

  observe(batch) {
    const samples = [];
    let begin = 0;
    for (let of = 0; of < batch.session.length; of++) {
      const end = batch.chunksEnd[of];
      let longest = 0;
      for (let chunk = begin + 1; chunk < end; chunk++) {
        longest = Math.max(longest, Number(batch.chunkAt[chunk]) - Number(batch.chunkAt[chunk - 1]));
      }
      // An answer of one chunk has no gap: it has no value, which is not 0.
      if (end - begin >= 2) samples.push({ metric: 0, value: longest / 1e9, weight: 1, of });
      begin = end;
    }
    return samples;
  }

  finish() {
    return [];
  }
}

export const metric = {
  Collector,
  describe() {
    return { name: "longest_gap", version: "0.1.0", summary: "longest gaps", configSchema: JSON.stringify(SCHEMA) };
  },
};
