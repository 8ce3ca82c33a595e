#!/bin/bash
# Sets up the Rust toolchain that builds the project's components, in a separate folder.
#
#   xtask/guest-toolchain.sh PREFIX     # about a minute, 150 MB to download, 1.5 GB unpacked
#   xtask/guest-toolchain.sh --pin      # prints what is pinned
#
# The compiler and the linker are Debian's packages for building web browsers, in exactly the versions below, unpacked (not
# installed: no root, nothing outside PREFIX). The standard library for wasm32-unknown-unknown is then built from the
# source package, once. PREFIX/bin/rustc and PREFIX/bin/wasm-ld are for cargo's RUSTC and
# CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER; `cargo xtask plugins` does all this by itself.
#
# Needs: Debian bookworm on amd64 with its security archive, up-to-date package lists (apt-get update), cargo.
# Exit status: 0 done; 3 a pinned package cannot be had here; others: something broke.
set -euo pipefail

RUST=1.96.0+dfsg1-1~deb12u2
RUST_MINOR=1.96
LLVM=1:22.1.8-1~deb12u1
# Raise this when the recipe below changes what it produces.
RECIPE=1

PIN="rustc-web $RUST, lld-22 $LLVM, recipe $RECIPE"
if [ "${1:-}" = --pin ]; then
    echo "$PIN"
    exit 0
fi
[ $# -eq 1 ] || { echo "usage: $0 PREFIX | --pin" >&2; exit 2; }

cannot() {
    echo "guest-toolchain: $*" >&2
    exit 3
}

command -v dpkg >/dev/null && command -v apt-get >/dev/null || cannot "this machine has no apt-get and dpkg"
[ "$(dpkg --print-architecture)" = amd64 ] || cannot "the pinned packages are for amd64"

mkdir -p "$1"
PREFIX=$(cd "$1" && pwd)
rm -f "$PREFIX/pin"
rm -rf "$PREFIX/root" "$PREFIX/bin" "$PREFIX/debs"
mkdir -p "$PREFIX/bin" "$PREFIX/debs"

PACKAGES=(
    "rustc-web=$RUST" "libstd-rust-web-$RUST_MINOR=$RUST" "libstd-rust-web-dev=$RUST" "rust-web-src=$RUST"
    "libllvm22=$LLVM" "lld-22=$LLVM"
)
(cd "$PREFIX/debs" && apt-get download -q "${PACKAGES[@]}") || cannot \
    "apt-get cannot download ${PACKAGES[*]} (run apt-get update first; if the archive has moved on, the pin has to move)"
for package in "$PREFIX"/debs/*.deb; do
    dpkg -x "$package" "$PREFIX/root"
done
rm -rf "$PREFIX/debs"

# The packages' own libraries, found wherever PREFIX is.
wrap() {
    printf '#!/bin/sh\nexport LD_LIBRARY_PATH="%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\nexec "%s" "$@"\n' \
        "$PREFIX/root/usr/lib/x86_64-linux-gnu:$PREFIX/root/usr/lib/llvm-22/lib" "$2" >"$PREFIX/bin/$1"
    chmod +x "$PREFIX/bin/$1"
}
wrap rustc "$PREFIX/root/usr/bin/rustc"
wrap wasm-ld "$PREFIX/root/usr/lib/llvm-22/bin/wasm-ld"

# The standard library, as the rlibs that a target has in an ordinary toolchain. The bitcode is for the components'
# link-time optimisation; the crates it needs are in the same package; the paths are mapped so that PREFIX is not in
# them.
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir "$WORK/src"
cat >"$WORK/Cargo.toml" <<'MANIFEST'
[package]
name = "seed"
version = "0.0.0"
edition = "2021"

[workspace]

[profile.release]
panic = "abort"
opt-level = 3
MANIFEST
echo '#![no_std]' >"$WORK/src/lib.rs"
TARGET=wasm32-unknown-unknown
(
    cd "$WORK"
    export RUSTC="$PREFIX/bin/rustc" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$WORK/target" CARGO_INCREMENTAL=0
    export CARGO_ENCODED_RUSTFLAGS
    CARGO_ENCODED_RUSTFLAGS="-Cembed-bitcode=yes"
    CARGO_ENCODED_RUSTFLAGS+=$'\x1f'"--remap-path-prefix=$PREFIX/root=/guest-toolchain"
    CARGO_ENCODED_RUSTFLAGS+=$'\x1f'"--remap-path-prefix=$PREFIX/root/usr/lib/rustlib/src/rust=/rustc"
    CARGO_ENCODED_RUSTFLAGS+=$'\x1f'"--remap-path-prefix=$WORK=/guest-toolchain/work"
    unset RUSTFLAGS RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER CARGO_BUILD_TARGET
    cargo build --quiet --release --target "$TARGET" -Zbuild-std=std,panic_abort --offline \
        --config 'source.crates-io.replace-with="packaged"' \
        --config "source.packaged.directory=\"$PREFIX/root/usr/lib/rustlib/src/rust/library/vendor\""
)
LIBRARIES="$PREFIX/root/usr/lib/rustlib/$TARGET/lib"
mkdir -p "$LIBRARIES"
for library in "$WORK/target/$TARGET/release/deps"/*.rlib; do
    case "$library" in
    */libseed-*) ;;
    *) cp "$library" "$LIBRARIES/" ;;
    esac
done

echo "$PIN" >"$PREFIX/pin"
echo "guest-toolchain: $PIN, in $PREFIX"
