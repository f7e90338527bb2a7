#!/usr/bin/env bash
# Checks Gradus as a dependency of other crates: the library builds without its default features and with each of them alone, it then needs
# few other crates, and a program without the profile lines is told of them.
#
#   scripts/dependency.sh      PROGRAMS names the folder of what is built [default: a temporary folder]
set -euo pipefail
cd "$(dirname "$0")/.."
CRATES=30
source=$PWD
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
target=$(realpath -m "${PROGRAMS:-$temporary/target}")

for features in "" terminal figures gif ndarray tensorboard terminal,figures terminal,gif; do
  echo "dependency: the library with the features: ${features:-none}"
  cargo clippy --quiet --package gradus --lib --locked --no-default-features --features "$features" -- -D warnings
done

crates=$(cargo tree --package gradus --no-default-features --edges normal,build --prefix none --no-dedupe --locked | sed 's/ (.*//' | sort -u | grep -cv '^gradus')
echo "dependency: $crates crates other than ours without default features, at most $CRATES"
[ "$crates" -le "$CRATES" ]

mkdir -p "$temporary/bare/src"
cd "$temporary/bare"
cat >src/main.rs <<'RUST'
use gradus::{Config, Error, Policy, Run, Show};

fn main() -> Result<(), Error> {
    let config = Config { steps: 4096, ..Config::preset("ppo", "cartpole", None)? };
    let folder = std::env::args().nth(1).expect("a folder");
    Run::create(config, &folder)?.train(Show::Progress)?;
    println!("{}", Policy::load(&folder)?.evaluate(10, gradus::Mode::Greedy)?.returns.len());
    Ok(())
}
RUST
cp "$source/examples/own_crate/Cargo.lock" .
sed -i 's/^name = "own_crate"/name = "bare"/' Cargo.lock
cat >Cargo.toml <<TOML
[package]
name = "bare"
version = "0.1.0"
edition = "2024"

[workspace]

[dependencies]
gradus = { path = "$source", default-features = false }
TOML
warning='warning: this debug build of gradus trains many times more slowly; add these lines to Cargo.toml, or use `cargo run --release`'
CARGO_TARGET_DIR=$target/slow cargo run --quiet -- slow >out 2>err
grep -qx "$warning" err && [ "$(grep -c warning err)" = 1 ] && [ "$(cat out)" = 10 ] || { echo "dependency: expected one warning and 10 episodes, got:" >&2; cat err out >&2; exit 1; }

# the lines that the warning names, as they stand
tail -n +2 err >>Cargo.toml
CARGO_TARGET_DIR=$target/fast cargo run --quiet -- fast >out 2>err
[ ! -s err ] && [ "$(cat out)" = 10 ] || { echo "dependency: expected no warning and 10 episodes, got:" >&2; cat err out >&2; exit 1; }
# the same bits, and neither figures nor event files
cmp slow/policy.safetensors fast/policy.safetensors
for file in fast/curve.svg fast/events.*; do
  [ ! -e "$file" ] || { echo "dependency: expected no $file without its feature" >&2; exit 1; }
done
echo "dependency: a program without the profile lines is told of them"
