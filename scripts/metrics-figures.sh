#!/bin/sh
# Draws the figures of docs/troubleshooting.md again, from 24 short runs. Takes half a minute on one core.
#     scripts/metrics-figures.sh [FOLDER OF THE RUNS]
set -eu
cd "$(dirname "$0")/.."
cargo build --quiet
gradus=${CARGO_TARGET_DIR:-target}/debug/gradus
runs=${1:-$(mktemp -d)}

# train NAME ARGUMENTS...: trains the runs NAME-1, NAME-2 and NAME-3 with the seeds 1, 2 and 3
train() {
    name=$1
    shift
    for seed in 1 2 3; do
        "$gradus" train --quiet --threads 1 "$@" --seed $seed --out "$runs/$name-$seed"
    done
}

# draw FIGURE FIRST SECOND METRICS...: plots these metrics of the runs FIRST-* and SECOND-*
draw() {
    figure=docs/images/metrics-$1.svg
    first=$2
    second=$3
    shift 3
    for metric in "$@"; do
        set -- "$@" --metric "$metric"
        shift
    done
    "$gradus" plot "$runs/$first"-[123] "$runs/$second"-[123] "$@" --out "$figure"
}

cartpole="ppo cartpole --preset cleanrl --steps 100k"
train learning-rate-0.0025 $cartpole --set optimiser.learning_rate=0.0025
train learning-rate-0.3 $cartpole --set optimiser.learning_rate=0.3
draw learning-rate learning-rate-0.0025 learning-rate-0.3 \
    rollout/ep_rew_mean train/approx_kl train/entropy_loss train/explained_variance

train clip-0.2 $cartpole --set optimiser.learning_rate=0.0025 --set ppo.epochs=20
train clip-inf $cartpole --set optimiser.learning_rate=0.0025 --set ppo.epochs=20 --set ppo.clip=inf
draw clip clip-0.2 clip-inf rollout/ep_rew_mean train/approx_kl train/clip_fraction train/entropy_loss

pendulum="ppo pendulum --steps 100k --set optimiser.learning_rate=0.0003"
train rewards-normalised $pendulum
train rewards-raw $pendulum --set wrappers.normalise_rewards=false
draw critic rewards-normalised rewards-raw rollout/ep_rew_mean train/explained_variance train/grad_norm train/approx_kl

sums="grpo target-sum --steps 60k"
train learning-rate-0.0005 $sums
train learning-rate-0.005 $sums --set optimiser.learning_rate=0.005
draw text learning-rate-0.0005 learning-rate-0.005 reward/mean entropy kl/old reward/frac_zero_std
