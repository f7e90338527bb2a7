#!/usr/bin/env bash
# Counts the instructions of the CPU engine's kernels under valgrind and compares them with benches/instructions.txt. Unlike times, counts do not
# depend on the load of the machine. The check fails if a count is above 1.03 times the stored count. If it is below 0.97 times, the script
# asks for new counts, which `--write` stores.
#
# Valgrind does not support AVX-512, so the AVX2 kernels are counted. Counts depend on the compiler. If the stored counts are from another rustc, the
# check is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

stored=benches/instructions.txt
mode=${1:-compare}
case $mode in
  compare | --write) ;;
  *)
    echo "error: expected --write or nothing, got $mode" >&2
    exit 2
    ;;
esac
skip() {
  echo "instructions: skipped, $*"
  exit 0
}
command -v valgrind >/dev/null || skip "valgrind is missing"
compiler=$(rustc --version)
if [ "$mode" = compare ]; then
  [ -f $stored ] || skip "$stored is missing; to write it: scripts/instructions.sh --write"
  of=$(sed -n 's/^# compiler: //p' $stored)
  [ "$compiler" = "$of" ] || skip "expected $of, got $compiler"
fi

program=$(cargo build --bench instructions --locked --message-format=json |
  sed -n 's/.*"name":"instructions".*"executable":"\([^"]*\)".*/\1/p')
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# removes the symbols, which valgrind would read in every run
strip -o "$scratch/kernels" "$program"
level=$(valgrind -q --tool=none "$scratch/kernels" level 2>/dev/null) || skip "valgrind cannot run the kernels"
[ "$level" = Avx2 ] || skip "expected a processor with AVX2, got the instruction set $level"

count() { # kernel, repeats, file for the number of instructions of the whole program
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$scratch/kernels" "$1" "$2" 2>&1 | sed -n 's/.*Collected : //p' >"$3"
}

"$scratch/kernels" >"$scratch/list"
while read -r kernel repeats; do
  # the difference of two counts does not contain the instructions before the first repeat
  count "$kernel" "$repeats" "$scratch/once" &
  count "$kernel" $((2 * repeats)) "$scratch/twice"
  wait $!
  echo "$kernel $((($(cat "$scratch/twice") - $(cat "$scratch/once")) / repeats))"
done <"$scratch/list" >"$scratch/counted"

if [ "$mode" = --write ]; then
  {
    echo "# Instructions of one repeat of each kernel, written by scripts/instructions.sh --write"
    echo "# compiler: $compiler"
    cat "$scratch/counted"
  } >$stored
  cat $stored
  exit 0
fi

awk '
  /^#/ { next }
  NR == FNR { before[$1] = $2; next }
  !($1 in before) { printf "%-24s %12d  has no stored count; to store it: scripts/instructions.sh --write\n", $1, $2; failed = 1; next }
  {
    ratio = $2 / before[$1]
    delete before[$1]
    verdict = ""
    if (ratio > 1.03) { verdict = "  above 1.03 times the stored count"; failed = 1 }
    if (ratio < 0.97) verdict = "  improved; to store the new count: scripts/instructions.sh --write"
    printf "%-24s %12d  %.3f%s\n", $1, $2, ratio, verdict
  }
  END {
    for (kernel in before) { printf "%-24s has a stored count but no longer exists; to remove the count: scripts/instructions.sh --write\n", kernel; failed = 1 }
    exit failed
  }
' $stored "$scratch/counted"
