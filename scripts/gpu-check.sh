#!/usr/bin/env bash
# Runs the tests of the engine `torch` on a GPU, trains on two tasks, measures speed, and writes one Markdown table.
#
#   scripts/gpu-check.sh build            builds into target/gpu-check, a folder that can be copied to another machine
#   scripts/gpu-check.sh [run]            builds if cargo is installed, then checks `cuda` and writes results/gpu/DATE-DEVICE.md
#
# Environment variables: DEVICE selects another device, such as cuda:1 or torch-cpu, OUT another folder for the table, QUICK=1 small sizes, and PARTS some of "tests train speed peers"
# [default: all]. The table grows as DATE-DEVICE-unfinished.md until the end, so that nothing is lost if the run is killed. PYTHON
# is an interpreter with PyTorch 2.11. The build uses the libtorch of this PyTorch. The run also uses it, even if the binary was built with another
# libtorch. Plain PyTorch and, if installed, JAX are measured for comparison.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
device=${DEVICE:-cuda}
out=${OUT:-results/gpu}
built=target/gpu-check
# torch_device is left out, because it tests machines without a GPU
tests=(torch_parity torch_worlds)

build() {
  mkdir -p "$built"
  local path
  export LIBTORCH_USE_PYTORCH=1
  path="$(dirname "$(command -v "$python")"):$PATH"
  PATH=$path cargo build --release --features tch --bin gradus
  cp target/release/gradus "$built/"
  for name in "${tests[@]}"; do
    # cargo's messages name the executable of each test
    local messages executable
    messages=$(PATH=$path cargo test --release --features tch --test "$name" --no-run --message-format=json-render-diagnostics)
    executable=$(sed -nE 's/.*"executable":"([^"]+)".*/\1/p' <<<"$messages" | tail -n 1)
    cp "$executable" "$built/$name"
  done
}

case ${1:-run} in
  build) build; exit 0 ;;
  run) if command -v cargo >/dev/null; then build; fi ;;
  *) echo "expected build or run, got $1" >&2; exit 2 ;;
esac

libraries=$("$python" -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parent / "lib")')
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
gradus=$built/gradus
scratch=$(mktemp -d)
mkdir -p "$out"
# what messages and other programs call the device
full=$device
[[ $device != cuda ]] || full=cuda:0

if [[ $device == cuda* ]]; then
  # the numbers are those of the visible GPUs
  name=$("$python" -c 'import sys, torch; print(torch.cuda.get_device_name(sys.argv[1]))' "$full")
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)
else
  name=$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1) driver=none
fi
torch=$("$python" -c 'import torch; print(torch.__version__)')
torch_device=${device/torch-cpu/cpu}
table="$out/$(date +%F)-$(tr -cs 'A-Za-z0-9' '-' <<<"$name" | sed 's/-*$//')${PARTS:+-${PARTS// /-}}.md"
unfinished=${table%.md}-unfinished.md
failed=0
[ ! -e "$unfinished" ] || mv "$unfinished" "${unfinished%.md}-before-$(date +%H%M%S).md"
trap 'rm -rf "$scratch"' EXIT

# whether a part is wanted
wanted() { [[ " ${PARTS:-tests train speed peers} " == *" $1 "* ]]; }
say() { printf '%s\n' "$*" | tee -a "$unfinished"; }
row() { say "| $1 | $2 | \`$3\` |"; }
# why a command has failed, by its exit code
reason() { if [ "$1" = 124 ]; then echo "no result after its time"; else tail -n 1 "$scratch/problem"; fi; }
# the number in the last line of a command's output
last() { tail -n 1 <<<"$1" | sed -nE 's/^[^:]*: ([0-9.]+).*$/\1/p'; }

say "# $name"
say
say "Driver $driver, PyTorch $torch, $(nproc) processor cores, $(date +%F), \`scripts/gpu-check.sh\`."
say
"$gradus" doctor --device "$device" >&2 || failed=1

wanted tests || tests=()
for test in ${tests[@]+"${tests[@]}"}; do
  echo "== $test on $device" >&2
  # one after the other, because the precision of products is a setting of the whole process
  RUST_TEST_THREADS=1 GRADUS_TEST_DEVICE=$device timeout 240 "$built/$test" >"$scratch/$test.log" 2>&1 || { failed=1; tail -n 40 "$scratch/$test.log" >&2; }
  say "- \`$test\` on $device: $(sed -nE 's/^test result: (.*); 0 ignored.*$/\1/p' "$scratch/$test.log" | tail -n 1)"
done
say

refused() { # what, the beginning of the error line, command...
  local what=$1 expected=$2 line code=0
  shift 2
  echo "== $*" >&2
  line=$("$@" 2>&1 >/dev/null) || code=$?
  line=$(tail -n 1 <<<"$line")
  if [[ $code != 2 || $line != "$expected"* ]]; then failed=1; line="expected exit code 2 and \`$expected\`, got $code and \`$line\`"; fi
  say "- $what: $line"
}
if [[ $device == cuda* ]] && wanted tests; then
  refused "a GPU that is not there" "error: device cuda:99: expected cuda:0" "$gradus" train ppo cartpole --device cuda:99 --out "$scratch/none"
  refused "no GPU is visible" "error: device cuda:0: expected NVIDIA's driver to start, got CUDA error 100" \
    env CUDA_VISIBLE_DEVICES= "$gradus" train ppo cartpole --device cuda --out "$scratch/none"
  refused "too little memory" "error: device $full: out of memory" \
    "$gradus" bench device --device "$device" --envs 4000000 --steps 33 --minibatches 1 --epochs 1 --updates 1
  if [ -e "$scratch/none" ]; then failed=1; say "- a refused run has left a folder"; fi
fi
if wanted train; then for run in 1 2; do
  timeout 120 "$gradus" train ppo cartpole --device "$device" --quiet --set envs=4096 --set ppo.minibatch_size=32768 --set steps=2000000 --set torch.worlds=device \
    --out "$scratch/same-$run" >&2 || failed=1
done
if cmp -s "$scratch"/same-{1,2}/metrics.csv && cmp -s "$scratch"/same-{1,2}/policy.safetensors; then
  say "- two runs with one seed on the device: the same bytes"
else
  failed=1
  say "- two runs with one seed on the device differ"
fi; fi
say

say "| what | measured | command |"
say "| --- | --- | --- |"
measure() { # label, unit, command...
  local label=$1 unit=$2 text said
  shift 2
  said=$*
  said=${said/#"$gradus"/gradus}
  said=${said/#"$python"/python3}
  echo "== $*" >&2
  if text=$(timeout 150 "$@" 2>"$scratch/problem"); then
    row "$label" "$(last "$text") $unit" "$said"
  else
    row "$label" "failed: $(reason $?)" "$said"
    failed=1
  fi
}

solve() { # label, agent, environment, settings...
  local label=$1 agent=$2 env=$3 text
  shift 3
  echo "== train $agent $env" >&2
  if timeout 150 "$gradus" train "$agent" "$env" --device "$device" --quiet --out "$scratch/$env" "$@" 2>"$scratch/problem" &&
    text=$("$gradus" eval "$scratch/$env" 2>"$scratch/problem"); then
    row "$label" "$(tail -n 1 <<<"$text")" "gradus train $agent $env --device $device${*:+ ${*/"$scratch"/runs}}"
  else
    row "$label" "failed: $(reason $?)" "gradus train $agent $env --device $device"
    failed=1
  fi
}
if wanted train; then
solve "CartPole, trained on the device, evaluated on the engine cpu" ppo cartpole
solve "CartPole without velocities, a GRU, trained on the device, evaluated on the engine cpu" ppo cartpole-masked
"$gradus" sft addition --until-exact 0.25 --evaluate-every 5 --out "$scratch/start" >/dev/null || failed=1
solve "addition, trained on the device, evaluated on the engine cpu" grpo addition --set init="$scratch/start"
fi

if [ -n "${QUICK:-}" ]; then
  counts=(1024) texts=1024 sizes=("0.1 M:2:64:4:176") batch=(--prompts 8 --group 8 --prompt-tokens 6 --new-tokens 16 --updates 3) micro=0
else
  counts=(1024 16384 65536 262144) texts=65536 sizes=("10 M:8:320:5:864" "100 M:14:768:12:2048")
  batch=(--prompts 64 --group 16 --prompt-tokens 64 --new-tokens 192 --updates 5) micro=65536
fi
if wanted speed; then
for envs in "${counts[@]}"; do
  measure "PPO, $envs CartPoles on the device" "steps/s" "$gradus" bench device --device "$device" --envs "$envs"
done
measure "GRPO, $texts target-sums on the device" "tokens/s" "$gradus" bench device --device "$device" --env target-sum --envs "$texts" --epochs 1
for size in "${sizes[@]}"; do
  IFS=: read -r label layers width heads hidden <<<"$size"
  shape=(--layers "$layers" --width "$width" --heads "$heads" --feed-forward-width "$hidden" --micro-batch "$micro" "${batch[@]}")
  for precision in f32 bf16; do
    echo "== GRPO, $label, $precision" >&2
    label_of="GRPO, $label parameters, $precision" said="gradus bench text --device $device --precision $precision ${shape[*]}"
    if ours=$(timeout 150 "$gradus" bench text --device "$device" --precision "$precision" "${shape[@]}" 2>"$scratch/problem"); then
      row "$label_of" "$(last "$ours") tokens/s; $(grep ^generating <<<"$ours"); $(grep "^ratio to" <<<"$ours")" "$said"
    else
      row "$label_of" "failed: $(reason $?)" "$said"
      failed=1
    fi
    if theirs=$(timeout 150 "$python" benches/peers/grpo_pytorch.py --device "$torch_device" --precision "$precision" "${shape[@]}" 2>"$scratch/problem"); then
      row "$label_of, plain PyTorch" "$(last "$theirs") tokens/s; $(grep ^generating <<<"$theirs")" "python3 benches/peers/grpo_pytorch.py ..."
    else
      row "$label_of, plain PyTorch" "failed: $(reason $?)" "python3 benches/peers/grpo_pytorch.py ..."
      failed=1
    fi
  done
done
measure "PPO, preset cleanrl, environments on the host" "steps/s" "$gradus" bench train ppo cartpole --preset cleanrl --set "device=$device" --set torch.worlds=host
fi
if wanted peers; then
for envs in "${counts[@]}"; do
  for worlds in device host; do
    measure "PPO, $envs CartPoles, plain PyTorch, environments on the $worlds" "steps/s" \
      "$python" benches/peers/ppo_pytorch.py --device "$torch_device" --worlds "$worlds" --envs "$envs" --steps 32 --rounds 3
  done
done
measure "PPO, CleanRL's settings, plain PyTorch" "steps/s" "$python" benches/peers/ppo_pytorch.py --device "$torch_device"
# otherwise its products of f32 are those of tf32 on today's GPUs
export JAX_DEFAULT_MATMUL_PRECISION=highest
if "$python" -c 'import jax' 2>/dev/null; then
  measure "PPO, CleanRL's settings, compiled by JAX" "steps/s" "$python" benches/peers/ppo_jax.py --device "$torch_device"
  for envs in "${counts[@]}"; do
    measure "PPO, $envs CartPoles, compiled by JAX" "steps/s" "$python" benches/peers/ppo_jax.py --device "$torch_device" --envs "$envs" --steps 32
  done
else
  say
  say "JAX is not installed: not measured."
fi
fi
mv "$unfinished" "$table"
echo "$table"
exit "$failed"
