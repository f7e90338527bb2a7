#!/usr/bin/env bash
# What PPO's critic costs and buys, on two text tasks and for two sizes of transformer: makes the supervised starts in runs/critic, trains the
# four comparisons in results/lessons/critic/*.toml, and measures time and memory. Whole runs that are there are kept.
#
#   results/lessons/critic.sh           # the comparisons: some 1.5 hours on one core
#   results/lessons/critic.sh cost      # time and memory, in cost.csv: some ten minutes on two idle cores
set -euo pipefail
cd "$(dirname "$0")/../.."
gradus=${GRADUS:-${CARGO_TARGET_DIR:-target}/release/gradus}
folder=results/lessons/critic
large=(--set transformer.layers=5 --set transformer.width=128 --set transformer.feed_forward_width=352)

start() { # TASK EXACT SIZE SETTINGS...
  local task=$1 exact=$2 size=$3
  shift 3
  for critic in "" -critic; do
    local out=runs/critic/$task-$size$critic
    [ -d "$out" ] || "$gradus" sft "$task" --until-exact "$exact" --evaluate-every 5 "$@" ${critic:+--set transformer.critic=separate} --out "$out" --quiet
  done
}
for size in 100k 1m; do
  settings=()
  [ $size = 100k ] || settings=("${large[@]}")
  start addition 0.25 $size "${settings[@]}"
  start chain-sum 0.1 $size "${settings[@]}"
done

if [ "${1:-}" != cost ]; then
  for task in addition chain-sum; do
    for size in 100k 1m; do
      "$gradus" compare $folder/$task-$size.toml --out $folder/$task-$size
    done
  done
  exit
fi

table=$folder/cost.csv
[ -f $table ] || echo 'task,size,agent,repetition,seconds,mebibytes,tokens' >$table
row() { # TASK SIZE AGENT NAME REPETITION SETTINGS...
  local task=$1 size=$2 agent=$3 name=$4 repetition=$5
  shift 5
  grep -q "^$task,$size,\"$name\",$repetition," $table && return
  local critic="" settings=()
  [ "$name" != "PPO, a critic of its own" ] || critic=-critic
  [ $size = 100k ] || settings=("${large[@]}")
  rm -rf runs/critic/cost
  /usr/bin/time -f %M -o runs/critic/memory "$gradus" train "$agent" "$task" "${settings[@]}" --set init=runs/critic/$task-$size$critic --envs 256 --steps 50k \
    --seed 101 "$@" --out runs/critic/cost --quiet
  awk -F, -v start="$task,$size,\"$name\",$repetition" -v memory="$(tail -1 runs/critic/memory)" '
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    { seconds = $column["time/time_elapsed"]; tokens = $column["time/total_timesteps"] }
    END { printf "%s,%s,%.0f,%s\n", start, seconds, memory / 1024, tokens }' runs/critic/cost/timing.csv >>$table
}
for repetition in 1 2 3; do
  for size in 100k 1m; do
    for task in addition chain-sum; do
      minibatch=256
      [ $task = addition ] || minibatch=576
      row $task $size grpo GRPO $repetition --set grpo.epochs=2 --set grpo.minibatches=4
      row $task $size reinforce "REINFORCE, 256 prompts" $repetition --set baseline=none --set group_size=1 --set normalise_returns=true --set clip=0.2 \
        --set reinforce.epochs=2 --set minibatches=4
      row $task $size ppo "PPO, a head as critic" $repetition --set ppo.minibatch_size=$minibatch
      row $task $size ppo "PPO, a critic of its own" $repetition --set ppo.minibatch_size=$minibatch --set transformer.critic=separate
    done
  done
done
rm -rf runs/critic/cost runs/critic/memory
