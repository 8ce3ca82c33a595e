// Builds the component: npm install, then node build.mjs
//
// `tiered_slo.js` and `world.wit` become `tiered_slo.wasm`. The same source gives the same bytes, and
// the component names its source: its custom section `veeksha-source` is the SHA-256 of world.wit and
// the script, one after the other.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const name = basename(here);
const script = join(here, `${name}.js`);
const world = join(here, "world.wit");
const component = join(here, `${name}.wasm`);

function fail(why) {
  console.error(why);
  process.exit(1);
}

function run(command, args, env = {}) {
  const ended = spawnSync(command, args, { stdio: "inherit", env: { ...process.env, ...env } });
  if (ended.error || ended.status !== 0) fail(`${command} failed: ${ended.error?.message ?? `exit status ${ended.status}`}`);
}

// The world's own package, with the contract next to it.
const made = mkdtempSync(join(tmpdir(), "veeksha-js-"));
process.on("exit", () => rmSync(made, { recursive: true, force: true }));
const wit = join(made, "wit");
mkdirSync(join(wit, "deps"), { recursive: true });
cpSync(join(here, "../../wit/0.2.0"), join(wit, "deps/veeksha-plugin"), { recursive: true });
cpSync(world, join(wit, "world.wit"));

// The engine is run once while it is built, and what it finds then stays in the component: see still.c.
const still = join(made, "still.so");
run(process.env.CC ?? "cc", ["-shared", "-fPIC", "-O1", join(here, "still.c"), "-o", still, "-ldl"]);
run(
  join(here, "node_modules/.bin/jco"),
  ["componentize", script, "--wit", wit, "--world-name", "plugin", "--backend", "quickjs", "--backend-qjs-disable-async", "--out", component],
  { LD_PRELOAD: still },
);

const source = createHash("sha256").update(readFileSync(world)).update(readFileSync(script)).digest("hex");
const section = Buffer.from(`veeksha-source${source}`);
const nameLength = "veeksha-source".length;
// A custom section: 0, its size, the name with its length, the payload. All lengths here take one byte.
appendFileSync(component, Buffer.concat([Buffer.from([0, section.length + 1, nameLength]), section]));
console.log(`${component}: of source ${source}`);
