#!/usr/bin/env bash
# Interrupts the commands that write files at every system call, and damages every file bit by bit: scripts/faults.sh [--every N]
#
# 1. For every system call of a command that names its folder, strace kills the command there, and in other runs lets the call fail with errors
#    such as a full disk. Afterwards the command is repeated or resumed without faults. It must write the same bytes as a command without
#    faults, leave no temporary file, and `gradus verify` must find no damage. A command that meets an error must exit with code 2 and one line.
# 2. Single bits of every file of a run, of a policy and of a comparison are flipped. The command that reads the file must refuse it with exit
#    code 2 and one line that names a file, or its result must be the same as without the flip. `gradus verify` must find the damage.
#
# `--every N` tries only every N-th system call and N-th bit. Needs strace, and on Linux only.
set -euo pipefail
cd "$(dirname "$0")/.."

every=1
if [ "${1:-}" = --every ]; then every=$2; fi
command -v strace >/dev/null || { echo "faults: expected strace, got none" >&2; exit 1; }
cargo build --locked --quiet
repository=$PWD
gradus=$PWD/${CARGO_TARGET_DIR:-target}/debug/gradus
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

tried=0
failed=0
[ "$every" = 1 ] || echo "every ${every}th fault"
fail() {
  failed=$((failed + 1))
  printf 'FAILED: %s\n' "$*"
  [ "$failed" -lt 20 ] || { echo "too many failures"; exit 1; }
}

# Errors that a system call can meet.
errors_of() {
  case $1 in
    openat) echo EACCES EMFILE ;;
    write) echo ENOSPC EIO ;;
    mkdir) echo ENOSPC ;;
    flock) echo ENOLCK ;;
    rename) echo EIO EACCES ;;
    clone3 | getrandom) echo EAGAIN ;;
    *) echo EIO ;;
  esac
}

# Lists the files under a folder that have the same bytes in every run, with their hashes. `replay/pages` depends on when checkpoints were written.
state_of() {
  (cd "$1" && find . -type f ! -name '.lock' ! -name 'timing.csv' ! -name '*.timing' ! -name 'state.safetensors' ! -name 'events.*' ! -path '*/replay/pages' \
    ! -name 'report.html' ! -name 'wall_clock.*' ! -name 'SHA256SUMS' -exec sha256sum {} + | sort -k 2)
}

# check NAME FAULT: repeats the command of `work` after a fault, and compares the folder `out` with the one of a command without faults.
check() {
  if ! recover >recovered 2>&1; then fail "$1, $2: cannot be repeated: $(head -n 1 recovered)"; return; fi
  if ! diff <(state_of ../reference/out) <(state_of out) >differences; then fail "$1, $2: other files: $(head -n 2 differences)"; return; fi
  if [ -n "$verifies" ] && ! "$gradus" verify out >verified 2>&1; then fail "$1, $2: $(grep -m 1 DAMAGED verified)"; return; fi
  left=$(find . -name '*.tmp-*' -o -name '*.new-*')
  [ -z "$left" ] || fail "$1, $2: left behind: $left"
}

# Whether the folder `out` can be verified.
verifies=yes

# sweep NAME: uses the functions `prepare`, `work` (the command) and `recover`.
sweep() {
  rm -rf reference try
  mkdir reference try
  (cd reference && prepare && work >said 2>&1) || { fail "$1 fails without faults"; return; }
  (cd try && prepare && with="strace -f -o ../trace" && work >said 2>&1)
  # the calls before the first one that names the folder belong to the start of the program
  start=$(awk '!/execve\(/ && /"\.?(out|study)[\/."]/ { print NR; exit }' trace)
  for call in openat close read write lseek fsync fdatasync rename mkdir rmdir unlink unlinkat flock ftruncate getdents64 statx linkat copy_file_range clone3 getrandom; do
    before=$(head -n "$((start - 1))" trace | grep -cE "^[0-9]+ +$call\(" || true)
    case $call in clone3 | getrandom) before=0 ;; esac
    all=$(grep -cE "^[0-9]+ +$call\(" trace || true)
    for ((n = before + 1; n <= all; n += every)); do
      for fault in kill $(errors_of "$call"); do
        rm -rf try
        mkdir try
        cd try
        prepare
        if [ "$fault" = kill ]; then inject="inject=$call:signal=KILL:when=$n"; else inject="inject=$call:error=$fault:when=$n"; fi
        code=0
        with="strace -f -o /dev/null -e trace=$call -e $inject"
        work >said 2>&1 || code=$?
        with=
        tried=$((tried + 1))
        case $fault:$code in
          kill:137 | kill:0 | *:0) ;;
          *:2) [ "$(grep -cE '^error: ' said)" = 1 ] || fail "$1, $call $n $fault: $(head -n 3 said)" ;;
          *) fail "$1, $call $n $fault: exit code $code: $(head -n 3 said)" ;;
        esac
        check "$1" "$call $n $fault"
        cd ..
      done
    done
  done
  echo "$1: $tried faults in all, $failed failed"
}

# The command runs under strace if `with` is set.
with=
run() { $with "$gradus" "$@"; }

prepare() { :; }
work() { run train ppo cartpole --preset cleanrl --steps 1024 --threads 1 --checkpoint-every 0 --quiet --out out; }
recover() { if [ -d out ]; then "$gradus" train --resume out --threads 1 --quiet; else work; fi; }
sweep "train"

# with a replay buffer, whose pages are files of their own; two checkpoints
dqn=(dqn cartpole --steps 2k --set dqn.learning_starts=500 --set dqn.rollout_steps=250 --set "network.hidden=[8]" --threads 1 --quiet --out out)
prepare() { :; }
work() { run train "${dqn[@]}" --checkpoint-every 0; }
recover() { if [ -d out ]; then "$gradus" train --resume out --threads 1 --quiet; else work; fi; }
sweep "train dqn"

prepare() { "$gradus" train ppo cartpole --preset cleanrl --steps 1024 --threads 1 --quiet --out out && rm out/curve.* out/policy.*; }
work() { run train --resume out --threads 1 --checkpoint-every 0 --quiet; }
recover() { work; }
sweep "train --resume"

prepare() { :; }
work() { run sft copy --steps 2 --batch 4 --threads 1 --quiet --out out; }
recover() { [ -d out ] || work; }
sweep "sft"

prepare() {
  printf '%s\n' 'environments = ["cartpole"]' 'seeds = 2' 'steps = 300' 'evaluations = 1' 'evaluation_episodes = 2' '[[agents]]' 'agent = "ppo"' >study.toml
}
work() { run compare study.toml --jobs 1 --out out; }
recover() { work; }
sweep "compare"

prepare() {
  printf '%s\n' 'environments = ["cartpole"]' 'seeds = 1' 'steps = 300' 'evaluation_episodes = 2' '[[agents]]' 'agent = "ppo"' '[agents.space]' '"ppo.clip" = [0.1, 0.2]' >study.toml
}
work() { run sweep study.toml --jobs 1 --out out; }
[ "$every" != 1 ] || sweep "sweep" # each draws figures, and takes minutes

prepare() {
  printf '%s\n' 'environments = ["cartpole"]' 'seeds = 1' 'test_seeds = 2' 'trials = 2' 'batch = 2' 'rungs = [{ steps = 1.0, seeds = 1 }]' 'steps = 300' 'evaluation_episodes = 2' \
    '[[agents]]' 'agent = "ppo"' '[agents.space]' '"ppo.clip" = [0.1, 0.2]' >study.toml
}
work() { run tune study.toml --jobs 1 --out out; }
[ "$every" != 1 ] || sweep "tune"

# a run that is trained further: nothing of the shorter one survives
prepare() { "$gradus" train ppo cartpole --preset cleanrl --steps 1024 --threads 1 --quiet --out out; }
work() { run train --resume out --steps 1500 --threads 1 --checkpoint-every 0 --quiet; }
recover() { if grep -q '^steps = 1500' out/config.toml; then "$gradus" train --resume out --threads 1 --quiet; else work; fi; }
sweep "train --resume --steps"

prepare() { "$gradus" train "${dqn[@]}"; }
work() { run train --resume out --steps 3k --threads 1 --checkpoint-every 0 --quiet; }
recover() { if grep -q '^steps = 3000' out/config.toml; then "$gradus" train --resume out --threads 1 --quiet; else work; fi; }
sweep "train --resume --steps of dqn"

# commands that write other folders and files
verifies=
prepare() { :; }
work() { run bandit epsilon-greedy=0.1 ucb=2 --count 5 --steps 20 --out out; }
recover() { work; }
sweep "bandit"

work() { run reproduce sutton-barto-4.3 --quick --out out; }
sweep "reproduce"

prepare() { "$gradus" train q-learning frozen-lake-deterministic --steps 300 --threads 1 --quiet --out out; }
work() { run values out --out out/values.svg; }
sweep "values"

prepare() { "$gradus" train q-learning frozen-lake-deterministic --steps 300 --threads 1 --quiet --out run; }
work() { run export run --hub out --episodes 1; }
recover() { [ -d out ] || work; }
sweep "export"

prepare() { :; }
work() { run new out --name mine --path "$repository"; }
sweep "new"
verifies=yes

# flips NAME FILE COMMAND...: flips bits of a file in the folder `try`, one at a time, and runs the command that reads the file.
flips() {
  name=$1 file=$2
  shift 2
  size=$(stat -c %s "reference/$file")
  # about 200 bits, spread over the file
  for ((i = 0; i < 200; i += every)); do
    bit=$((i * 8 * size / 200 + i % 8))
    rm -rf try
    cp -r reference try
    byte=$(od -An -tu1 -j $((bit / 8)) -N 1 "try/$file")
    printf "%b" "\\x$(printf %02x $((byte ^ (1 << (bit % 8)))))" | dd of="try/$file" bs=1 seek=$((bit / 8)) conv=notrunc status=none
    tried=$((tried + 1))
    code=0
    (cd try && "$@" >../said 2>&1) || code=$?
    case $code in
      0) diff <(state_of reference/out) <(state_of try/out) >differences || fail "$name, bit $bit of $file: other files: $(head -n 2 differences)" ;;
      2) [ "$(grep -cE '^error: .*(/|\.)' said)" = 1 ] || fail "$name, bit $bit of $file: $(head -n 3 said)" ;;
      *) fail "$name, bit $bit of $file: exit code $code: $(head -n 3 said)" ;;
    esac
  done
  echo "$name, $file: $tried faults in all, $failed failed"
}

rm -rf reference
mkdir reference
(cd reference && "$gradus" train ppo cartpole --preset cleanrl --steps 1024 --threads 1 --quiet --out out)
for file in state.safetensors metrics.csv episodes.csv timing.csv config.toml "$(cd reference/out && echo events.*)"; do
  flips "train --resume" "out/$file" "$gradus" train --resume out --threads 1 --quiet
done
flips "eval" out/policy.safetensors "$gradus" eval out --episodes 1

rm -rf reference
mkdir reference
(cd reference && "$gradus" train "${dqn[@]}")
for file in state.safetensors "$(cd reference/out && echo replay/*.safetensors)"; do
  flips "train --resume of dqn" "out/$file" "$gradus" train --resume out --threads 1 --quiet
done

[ "$failed" = 0 ] || exit 1
echo "faults: $tried tried, none failed"
