// Makes one JavaScript module of a plugin and the SDK:
// node bundle.mjs TOOLS PROJECT ENTRY OUTPUT
//
// TOOLS is the folder with node_modules/esbuild, PROJECT that of the plugin, ENTRY the module that
// `veeksha-host plugin build` writes. The interfaces of the host that it imports are printed as a
// JSON array. The module's last line maps its lines to those of the sources, for messages.

import { createRequire } from "node:module";
import { appendFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [tools, project, entry, output] = process.argv.slice(2).map((path) => resolve(path));
const sdk = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(tools, "package.json"))("esbuild");

const built = await esbuild
  .build({
    entryPoints: [entry],
    outfile: output,
    bundle: true,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2023",
    alias: { veeksha: join(sdk, "veeksha") },
    external: ["veeksha:*"],
    absWorkingDir: project,
    sourcemap: "external",
    metafile: true,
    write: true,
    logLevel: "warning",
    tsconfigRaw: { compilerOptions: { target: "es2023", useDefineForClassFields: false } },
  })
  .catch(() => process.exit(1));

const [{ imports }] = Object.values(built.metafile.outputs).filter((file) => file.entryPoint);
const named = imports.map(({ path }) => /^veeksha:plugin\/(.+)@/.exec(path)?.[1]).filter(Boolean);

const map = JSON.parse(
  await import("node:fs/promises").then((fs) => fs.readFile(`${output}.map`, "utf8")),
);
appendFileSync(output, `\nglobalThis.__veekshaLines = ${JSON.stringify(lineTable(map))};\n`);
console.log(JSON.stringify([...new Set(named)]));

// The source and line of each line of the bundle, without those that follow from the one before.
function lineTable({ mappings, sources }) {
  const lines = [];
  const state = [0, 0, 0, 0];
  let last = [0, -1, 0];
  mappings.split(";").forEach((segments, index) => {
    state[0] = 0;
    const places = (segments ? segments.split(",") : []).map((segment) => {
      numbers(segment).forEach((change, field) => (state[field] += change));
      return [state[1], state[2] + 1];
    });
    // The first segment of an indented line is its indentation, with the place before it.
    const first = places[1] ?? places[0];
    if (!first) return;
    const line = index + 1;
    const isNext = first[0] === last[1] && first[1] - last[2] === line - last[0];
    if (!isNext) lines.push((last = [line, ...first]));
  });
  return { sources: sources.map(shown), lines };
}

function shown(source) {
  const path = resolve(dirname(output), source);
  const ofSdk = relative(sdk, path);
  return ofSdk.startsWith("veeksha") ? `sdk/${ofSdk}` : relative(project, path);
}

// The numbers of a segment of a source map: base 64, least bits first, the lowest is the sign.
function numbers(segment) {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const found = [];
  let value = 0;
  let shift = 0;
  for (const letter of segment) {
    const bits = letters.indexOf(letter);
    value += (bits & 31) << shift;
    shift += 5;
    if (bits & 32) continue;
    found.push(value & 1 ? -(value >> 1) : value >> 1);
    value = shift = 0;
  }
  return found;
}
