#!/usr/bin/env bash
# Redraws all published figures of `gradus reproduce list`, and the gallery, and prints the seconds of each.
#
#   scripts/reproductions.sh               writes to results/reproductions, in about an hour on two cores
#   scripts/reproductions.sh --quick       makes the quick version of each twice in a temporary folder, and checks that both have the same bytes
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet
gradus=target/debug/gradus
names=$("$gradus" reproduce list | grep -v '^ ')

if [ "${1:-}" != --quick ]; then
  for name in $names; do
    "$gradus" reproduce "$name" --out "results/reproductions/$name" | tail -n 1
  done
  "$gradus" reproduce gallery --out results/reproductions
  exit
fi

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
for name in $names; do
  for call in a b; do
    "$gradus" reproduce "$name" --quick --out "$temporary/$call/$name" >"$temporary/log"
  done
  # times differ
  diff -r -x 'timing.csv' -x 'time.*' "$temporary/a/$name" "$temporary/b/$name"
  "$gradus" pages "$temporary/a/$name/README.md" >/dev/null
  echo "$name: $(tail -n 1 "$temporary/log" | cut -d, -f1), twice the same bytes"
done
"$gradus" reproduce gallery --out "$temporary/a" >/dev/null
"$gradus" pages "$temporary/a/README.md"
