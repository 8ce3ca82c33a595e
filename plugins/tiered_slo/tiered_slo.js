// The SLO check `tiered_slo`: a bound for each tier of requests, where a tier is the value of a label (`tier = "gold"`).
//
// An example of a plugin in JavaScript. Numbers of 64 bits come as numbers or as BigInt, by the engine that the component is built
// with, so they go through `Number`; errors are thrown as plain objects.

const SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Config",
  description: "The SLO check `tiered_slo`.",
  type: "object",
  additionalProperties: false,
  required: ["objectives"],
  properties: {
    label: {
      type: "string",
      default: "tier",
      description: "The label whose values are the tiers.",
    },
    objectives: {
      type: "array",
      minItems: 1,
      description: "What is asked of each tier.",
      items: {
        type: "object",
        additionalProperties: false,
        required: ["metric", "at_most"],
        properties: {
          metric: { type: "string", description: "A metric of the run, built in or a plugin's." },
          percentile: {
            type: "number",
            minimum: 0,
            maximum: 100,
            default: 99,
            description: "Which percentile of its samples.",
          },
          at_most: {
            type: "object",
            minProperties: 1,
            additionalProperties: { type: "number" },
            description: "For each tier, what the percentile may be, in the metric's unit.",
          },
        },
      },
    },
  },
};

function refuse(path, message, hint) {
  throw { code: "config", message, hint, path };
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function known(object, names, path) {
  for (const name of Object.keys(object)) {
    if (!names.includes(name)) {
      refuse(`${path}/${name}`, `unknown key \`${name}\`; known here: ${names.map((n) => `\`${n}\``).join(", ")}`);
    }
  }
}

function readObjective(objective, path) {
  if (!isObject(objective)) refuse(path, "an objective is an object");
  known(objective, ["metric", "percentile", "at_most"], path);
  const { metric, percentile = 99, at_most: bounds } = objective;
  if (typeof metric !== "string" || metric === "") refuse(`${path}/metric`, "an objective names a metric");
  if (!(percentile >= 0 && percentile <= 100)) refuse(`${path}/percentile`, "a percentile is a number from 0 to 100");
  if (!isObject(bounds) || Object.keys(bounds).length === 0) {
    refuse(`${path}/at_most`, "an objective has a bound for each tier", '"at_most": {"gold": 0.3, "free": 2}');
  }
  for (const [tier, bound] of Object.entries(bounds)) {
    if (!Number.isFinite(bound)) refuse(`${path}/at_most/${tier}`, "a bound is a number");
  }
  return { metric, percentile, bounds };
}

function readConfig(text) {
  let config;
  try {
    config = JSON.parse(text);
  } catch (error) {
    refuse("", `the configuration is not JSON: ${error.message}`);
  }
  if (!isObject(config)) refuse("", "the configuration is an object");
  known(config, ["label", "objectives"], "");
  const { label = "tier", objectives } = config;
  if (typeof label !== "string" || label === "") refuse("/label", "a label has a name");
  if (!Array.isArray(objectives) || objectives.length === 0) refuse("/objectives", "there is nothing to check");
  return { label, objectives: objectives.map((objective, i) => readObjective(objective, `/objectives/${i}`)) };
}

/** What fraction of samples lies above a percentile, as a count: fewer than one sample means little. */
function samplesAbove(count, percentile) {
  return Math.floor((count * (100 - percentile)) / 100);
}

class Checker {
  static open(config) {
    const checker = new Checker();
    checker.config = readConfig(config);
    return checker;
  }

  check(results) {
    const { label, objectives } = this.config;
    const verdicts = [];
    for (const { metric, percentile, bounds } of objectives) {
      for (const [tier, bound] of Object.entries(bounds)) {
        const filter = [[label, tier]];
        const count = Number(results.stats(metric, filter).count);
        const observed = results.percentile(metric, percentile, filter);
        let detail = `${count} samples`;
        if (count === 0) detail = `no samples of requests labelled ${label} = ${tier}`;
        else if (samplesAbove(count, percentile) < 1 && percentile < 100) detail += `, too few for p${percentile}`;
        verdicts.push({
          name: `p${percentile}(${metric}{${label}="${tier}"})`,
          met: observed != null && observed <= bound,
          observed: observed ?? undefined,
          threshold: bound,
          detail,
        });
      }
    }
    return verdicts;
  }
}

export const sloCheck = {
  Checker,
  describe() {
    return {
      name: "tiered_slo",
      version: "0.1.0",
      summary: "a bound for each tier of requests",
      configSchema: JSON.stringify(SCHEMA),
    };
  },
};
