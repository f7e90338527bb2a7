#!/usr/bin/env bash
# Draws the figures of the lessons again, in less than a minute; not those that take minutes or more: the cliff (examples/tabular), DQN without
# its devices (gradus compare results/lessons/dqn.toml) and overestimation (gradus reproduce overestimation).
#
#   scripts/lesson-figures.sh              writes them to where the lessons show them
#   scripts/lesson-figures.sh --check      compares them with those that are there: the same bytes on every computer
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet
cargo build --quiet --example bandit_testbed --example exact_gradient
target=$(realpath "${CARGO_TARGET_DIR:-target}")/debug
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# draw FIGURE PLACE: copies a figure of the folder $work to its place, or compares it
if [ "${1:-}" = --check ]; then draw() { cmp "$work/$1" "$2"; }; else draw() { cp "$work/$1" "$2"; }; fi

# lesson 1
(cd "$work" && "$target/examples/bandit_testbed" >/dev/null)
for figure in 2.2 2.4 2.5; do draw results/bandits/figure-$figure.svg results/bandits/figure-$figure.svg; done

# lesson 2
"$target/gradus" train --quiet value-iteration frozen-lake --out "$work/lake"
"$target/gradus" values "$work/lake" >/dev/null
draw lake/values.svg docs/course/frozen-lake.svg

# lessons 3 and 4
for figure in 6.2 6.5 7.2; do
  "$target/gradus" reproduce sutton-barto-$figure --out "$work/$figure" >/dev/null
  draw $figure/figure.svg results/reproductions/sutton-barto-$figure/figure.svg
done

# lesson 7
"$target/examples/exact_gradient" "$work/lesson-7" >/dev/null
for ending in csv svg; do draw lesson-7/exact-gradient.$ending results/lessons/exact-gradient.$ending; done
