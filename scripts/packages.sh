#!/usr/bin/env bash
# Checks the packages of the crates. Each must have its sources, a readme and the licence texts, and none of the published results, golden files and
# CI files. With `--build`, also packs the crates, builds each package outside the workspace, as its users do, and trains with the packaged program.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "packages: $*" >&2
  exit 1
}

for manifest in Cargo.toml */Cargo.toml course/bugs/Cargo.toml; do
  [ "$manifest" != python/Cargo.toml ] || continue # its package is a wheel
  folder=$(dirname "$manifest")
  name=$(sed -nE 's/^name = "(gradus[a-z-]*)"$/\1/p' "$manifest" | head -n 1)
  list=$(cargo package --manifest-path "$manifest" --list --allow-dirty --locked --no-metadata)
  expected=(LICENSE-APACHE LICENSE-MIT README.md)
  mapfile -t -O ${#expected[@]} expected < <(git -C "$folder" ls-files src presets)
  if [ "$name" = gradus ]; then
    mapfile -t -O ${#expected[@]} expected < <(git ls-files build.rs CHANGELOG.md CITATION.cff docs examples ':!examples/own_crate')
  fi
  for file in "${expected[@]}"; do
    grep -qxF -- "$file" <<<"$list" || fail "$name: expected the file $file"
  done
  if grep -E '^(\.ci|\.github|benches/peers|results|runs|target|tests/golden)/' <<<"$list"; then
    fail "$name: expected none of the files above"
  fi
  echo "$name: $(wc -l <<<"$list") files"
done
[ "${1:-}" = --build ] || exit 0

# without `--no-metadata`, cargo warns that the manifests contain no address of the project
log=target/packages/log
mkdir -p target/packages
# cargo keeps what it unpacked from the temporary registry of an earlier call, whose crates had the same version
rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/{src,cache}/-*/gradus-*
# gradus-language is no member of this workspace
cargo --config 'patch.crates-io.gradus-language.path="language"' package --workspace --exclude gradus-benches --allow-dirty --locked --no-metadata --target-dir target/packages >$log 2>&1 ||
  { cat $log; fail "expected packages that build, got the errors above"; }
# the profile and the patch name crates that a single package does not depend on; the course's test needs the answers, which stay here
if grep '^warning' $log | grep -vE '^warning: (profile package spec|patch `gradus-language|ignoring test `exercises`)'; then
  fail "expected no warnings, see $log"
fi

# The program of the package and that of the workspace must train the same policy. They must also draw the same figure, because the package
# includes the font.
runs=$(mktemp -d)
trap 'rm -r "$runs"' EXIT
cargo run --quiet --locked -- train ppo cartpole --steps 2k --out "$runs/workspace" >/dev/null
target/packages/debug/gradus train ppo cartpole --steps 2k --out "$runs/package" >/dev/null
for file in config.toml policy.safetensors curve.png; do
  cmp "$runs/workspace/$file" "$runs/package/$file" || fail "expected the same $file"
done
echo "the packages build without warnings; their program trains the same policy and draws the same curve"
