#!/bin/sh
# Builds tiered_slo.wasm from tiered_slo.js. Needs Node.js 20 or newer and, once, `npm install` in this folder.
set -eu
cd "$(dirname "$0")"
wit=$(mktemp -d)
trap 'rm -rf "$wit"' EXIT
mkdir "$wit/deps"
cp -r ../../wit/0.1.0 "$wit/deps/veeksha-plugin"
# A plugin's own world imports only what it uses: JavaScript imports all that its world does.
cat > "$wit/world.wit" <<'WIT'
package plugins:tiered-slo;

world tiered-slo {
  import veeksha:plugin/results@0.1.0;
  export veeksha:plugin/slo-check@0.1.0;
}
WIT
npx jco componentize tiered_slo.js --wit "$wit" --world-name tiered-slo \
  --backend quickjs --backend-qjs-disable-async --out tiered_slo.wasm
