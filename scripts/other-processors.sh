#!/usr/bin/env bash
# Trains short runs on other processors, which qemu emulates, and compares their files byte for byte with those of this processor: an x86 processor without
# fused multiply-add, one with AVX2, and aarch64. Needs the Debian packages qemu-user, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, rustc-web and
# libstd-rust-web-dev; the standard library for aarch64 is the arm64 build of the last one, which the script downloads with apt and unpacks beside the others.
# Skips what a missing package prevents.
set -euo pipefail
cd "$(dirname "$0")/.."

has() { dpkg -s "$1" >/dev/null 2>&1 || { echo "other processors: skipped, the package $1 is not installed"; return 1; }; }
has qemu-user || exit 0

cargo build --locked --quiet
native=$PWD/${CARGO_TARGET_DIR:-target}/debug/gradus
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# NAME ARGUMENTS...: one training a line. Emulation without vector instructions is some hundred times slower.
trainings() {
  cat <<'END'
ppo ppo cartpole --steps 1024
acrobot a2c acrobot --steps 512
priorities dqn cartpole --steps 1200 --set dqn.priority_exponent=0.6 --set dqn.learning_starts=400 --set network.hidden=[8]
sac sac pendulum --steps 500 --set sac.learning_starts=300 --set network.hidden=[16] --set sac.batch_size=16
radam pqn cartpole --steps 1024 --set optimiser.rule=radam --set network.hidden=[8]
text grpo target-sum --steps 200 --set envs=16 --set transformer.layers=1
table q-learning frozen-lake --steps 500
END
}

# all FOLDER COMMAND...: trains everything with this command.
all() {
  mkdir -p "$1"
  while read -r name arguments; do
    # shellcheck disable=SC2086
    (cd "$1" && "${@:2}" train $arguments --seed 3 --threads 1 --quiet --out "$name")
  done < <(trainings)
}

# compare FOLDER: compares its files with those of this processor.
compare() {
  local files=0
  while read -r name _; do
    for file in config.toml metrics.csv episodes.csv policy.safetensors curve.svg curve.png; do
      cmp "$folder/native/$name/$file" "$1/$name/$file"
      files=$((files + 1))
    done
  done < <(trainings)
  echo "$files files are the same"
}

all "$folder/native" "$native"
for level in portable avx2; do
  printf '%s: ' "GRADUS_SIMD=$level"
  if GRADUS_SIMD=$level "$native" list >/dev/null 2>&1; then GRADUS_SIMD=$level all "$folder/$level" "$native" && compare "$folder/$level"; else echo "not on this processor"; fi
done
# the features that qemu lacks are switched off, so that it does not warn of them
for processor in Nehalem Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-rtm,-invpcid; do
  printf 'x86-64, %s: ' "${processor%%,*}"
  all "$folder/$processor" qemu-x86_64 -cpu "$processor" "$native"
  compare "$folder/$processor"
done

for package in gcc-aarch64-linux-gnu libc6-dev-arm64-cross rustc-web libstd-rust-web-dev; do has "$package" || exit 0; done
library=${XDG_CACHE_HOME:-$HOME/.cache}/gradus/arm64
if [ ! -d "$library/usr/lib/rustlib/aarch64-unknown-linux-gnu" ]; then
  mkdir -p "$library/lists/partial" "$library/cache/archives/partial"
  (
    cd "$library"
    apt=(apt-get -qq -o APT::Sandbox::User=root -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 -o "Dir::State::lists=$library/lists" -o "Dir::Cache=$library/cache")
    "${apt[@]}" update
    "${apt[@]}" download libstd-rust-web-dev:arm64 2>/dev/null
    dpkg -x libstd-rust-web-dev_*_arm64.deb .
  )
fi
RUSTC=/usr/bin/rustc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
  RUSTFLAGS="--sysroot $library/usr -C target-feature=+crt-static" \
  cargo build --locked --quiet --target aarch64-unknown-linux-gnu --target-dir target/other-processors
printf 'aarch64: '
all "$folder/aarch64" qemu-aarch64 "$PWD/target/other-processors/aarch64-unknown-linux-gnu/debug/gradus"
compare "$folder/aarch64"
