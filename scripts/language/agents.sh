#!/usr/bin/env bash
# Trains SmolLM2 with several agents on the three tasks of language/tasks, three seeds each: scripts/language/agents.sh [SECONDS]
#
# Adds a row to results/language/agents.csv for each run that has none, and rows to curves.csv for its updates: the tokens so far, the mean reward, the KL divergence from the beginning per token,
# and the mean length. The columns of agents.csv: tokens, seconds of processor time and largest memory in MB of the training, and the share of right answers to the test questions, sampled
# and greedy. The agent `start` is the model before the training; on the sums, it has learned from a few answers first (`gradus sft`), and its column pass_8 is the share of questions with a
# right answer among eight. Runs on one thread (THREADS), and stops before a run for which the seconds of processor time that are left do not suffice [default: 36000, of all rows].
# ONLY is a regular expression that "task,agent,seed" matches [default: all].
# Needs a program with the feature `language` (GRADUS, default target/release/gradus) and scripts/models.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
gradus=${GRADUS:-target/release/gradus}
budget=${1:-36000}
threads=${THREADS:-1}
table=results/language/agents.csv
curves=results/language/curves.csv
[ -e $table ] || echo "task,agent,seed,tokens,seconds,megabytes,sampled,greedy,pass_8" >$table
[ -e $curves ] || echo "task,agent,seed,tokens,reward,kl,length" >$curves
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# the mean reward of a run's answers to all test questions
right() {
  "$gradus" eval "$1" --episodes "$2" --json --seed 1 "${@:3}" | python3 -c 'import json, sys; print(round(json.load(sys.stdin)["mean"], 4))'
}

# runs a command and prints its processor time in seconds and its largest memory in MB
measured() {
  python3 - "$@" <<'END_OF_PYTHON'
import resource, subprocess, sys

subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{used.ru_utime + used.ru_stime:.0f},{used.ru_maxrss * 1024 // 1000000}")
END_OF_PYTHON
}

# whether there is a row, or no time for it
done_or_late() {
  grep -q "^$1,$2,$3," $table && return
  awk -F, -v b="$budget" -v a="$2" 'NR > 1 { s += $5; if ($2 == a && $5 > k) k = $5 } END { exit !(s + k > b) }' $table
}

for seed in 1 2 3; do
  for task in four-to-ten-words one-question sums; do
    world="chat:language/tasks/$task.jsonl?model=models/SmolLM2-135M-Instruct.Q4_1.gguf"
    questions=232
    start=()
    if [ "$task" = sums ]; then
      questions=240
      start=(--set "init=$work/start-$seed")
    fi
    while read -r agent name settings; do
      [ "$task $agent" = "sums grpo-all" ] && continue # it would need a warm start of all parameters
      grep -qE "${ONLY:-,}" <<<"$task,$agent,$seed" || continue
      done_or_late "$task" "$agent" "$seed" && continue
      if [ "$task" = sums ] && [ ! -e "$work/start-$seed" ]; then
        "$gradus" sft "$world" --seed "$seed" --threads "$threads" --set optimiser.learning_rate=5e-4 --batch 32 --steps 10 --quiet --out "$work/start-$seed" >&2
      fi
      rm -rf "$work/run"
      # a learning rate that changes nothing: the model itself
      [ "$agent" != start ] || settings="--steps 64 --set optimiser.learning_rate=1e-20"
      # shellcheck disable=SC2086
      cost=$(measured "$gradus" train "$name" "$world" --seed "$seed" --threads "$threads" --quiet --set reference.measure=true ${start[@]+"${start[@]}"} $settings --out "$work/run")
      best=
      [ "$agent" != start ] || best=$("$gradus" eval "$work/run" --episodes $questions --best-of 8 --seed 1 --json | python3 -c 'import json, sys; print(round(json.load(sys.stdin)["best_of"][-1]["reward"], 4))')
      tokens=$(tail -n 1 "$work/run/metrics.csv" | cut -d, -f2)
      row="$task,$agent,$seed,$tokens,$cost,$(right "$work/run" $questions --sampled),$(right "$work/run" $questions),$best"
      # a run that was interrupted before its row has its curve
      grep -q "^$task,$agent,$seed," $curves || python3 - "$work/run/metrics.csv" "$task,$agent,$seed" $curves <<'END_OF_PYTHON'
import csv, sys

with open(sys.argv[3], "a") as file:
    for line in csv.DictReader(open(sys.argv[1])):
        file.write(f"{sys.argv[2]},{line['time/total_timesteps']},{line['reward/mean']},{line['kl/ref']},{line['completions/mean_length']}\n")
END_OF_PYTHON
      echo "$row" >>$table
    done <<'END_OF_AGENTS'
start grpo
grpo grpo
rloo reinforce
reinforce++ reinforce --preset reinforce-plus-plus
ppo ppo
dpo dpo
grpo-all grpo --set transformer.lora_rank=0 --set optimiser.learning_rate=5e-6
END_OF_AGENTS
  done
done
