#!/usr/bin/env bash
# Measures the first build of a new user: the processor time of `cargo build --example cartpole_ppo`, per crate, and the number of dependencies.
# Fails if the total time or the number exceeds its limit.
#
#   scripts/first-light.sh [FOLDER]      builds from scratch in FOLDER (default: a temporary folder)
#
# Processor time depends on the machine and its load. Therefore the total is scaled to a machine that compiles the dependencies in REFERENCE
# seconds, and LIMIT is the limit of the scaled time. When Cargo.lock changes, measure REFERENCE again on an idle machine.
set -euo pipefail
cd "$(dirname "$0")/.."

# The scale leaves some of the machine's variation: with the dependencies of before, one commit took 87 to 93 s on one day and 95 s on the next.
# The limit therefore lies above the aim, 82 s.
LIMIT=110    # seconds of processor time; a commit with 98 to 100 on an idle machine took a tenth more beside other work or on other processors: the ratio of optimised to other crates differs
REFERENCE=28 # seconds of processor time for the dependencies, on the machine for which LIMIT was set; 32 while the command line was in the library
CRATES=85

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
folder=${1:-$temporary/target}
if [ -e "$folder/debug" ]; then
  echo "first light: expected a folder without a build, got $folder" >&2
  exit 2
fi

# the dependencies of the example, and with those of the program
count() { cargo tree "$@" --edges normal,build --prefix none --no-dedupe --locked | sed 's/ (.*//' | sort -u | grep -cv '^gradus'; }
library=$(count --package gradus)
crates=$(count)
cargo fetch --quiet --locked

# cargo calls this wrapper instead of rustc
cat >"$temporary/rustc" <<'WRAPPER'
#!/usr/bin/env bash
"$@"
status=$?
name=
for ((i = 1; i < $#; i++)); do
  if [ "${!i}" = --crate-name ]; then j=$((i + 1)); name=${!j}; fi
done
if [ -n "$name" ]; then
  times >"$FIRST_LIGHT.$$" # without a pipe, because its subshell would print its own times
  echo "$name $(tail -n 1 "$FIRST_LIGHT.$$")" >>"$FIRST_LIGHT"
fi
exit $status
WRAPPER
chmod +x "$temporary/rustc"
export FIRST_LIGHT=$temporary/times
# one job, because crates that are compiled at the same time slow each other down, by more on some machines than on others
CARGO_BUILD_JOBS=1 CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$folder RUSTC_WRAPPER=$temporary/rustc cargo build --quiet --example cartpole_ppo --locked

# `times` prints minutes and seconds, 0m1.250s
awk -v limit=$LIMIT -v reference=$REFERENCE -v library="$library" -v crates="$crates" -v most=$CRATES '
  function seconds(text, parts) { split(text, parts, /[ms]/); return 60 * parts[1] + parts[2] }
  {
    time = seconds($2) + seconds($3)
    total += time
    if ($1 ~ /^gradus/) own[$1] += time; else if ($1 == "cartpole_ppo") own[$1] += time; else others += time
  }
  END {
    for (name in own) printf "%6.1f s  %s\n", own[name], name
    printf "%6.1f s  dependencies\n", others
    scaled = total * reference / others
    printf "%6.1f s of processor time in total; %.0f s if the dependencies took %d s, at most %d s\n", total, scaled, reference, limit
    printf "%d crates other than ours, %d with those of the program, at most %d\n", library, crates, most
    exit(scaled > limit || crates > most)
  }
' "$temporary/times" || { echo "first light: a limit is exceeded" >&2; exit 1; }
