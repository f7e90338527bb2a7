#!/usr/bin/env bash
# Makes a sweep of 1000 short runs as 1000 tasks, by xargs, by SLURM on one node, and by HyperQueue with one worker; a fifth of the tasks are killed. Afterwards the report
# of each must have the bytes of that of one process. Also checks the file for Kubernetes against its schema, and prints the overhead of a task.
#
#   scripts/clusters.sh [xargs] [slurm] [hq] [k8s]     [default: all]
#
# SLURM is Debian's `slurm-wlm` (installed if the script may), HyperQueue the local cluster of PyPI's package `hyperqueue`, in a virtual environment of its own. Takes ten minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet --locked
gradus=$PWD/target/debug/gradus
venv=${XDG_CACHE_HOME:-$HOME/.cache}/gradus/clusters-venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check hyperqueue==0.27.0 kubernetes-validate==1.37.0
dir=$(mktemp -d)
# a build in the meantime changes nothing
mkdir "$dir/built"
cp "$gradus" "$dir/built/gradus"
gradus=$dir/built/gradus
pids=()
stop() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
  rm -rf "$dir"
}
trap stop EXIT
cd "$dir"
kinds=("$@")
[ $# -gt 0 ] || kinds=(xargs slurm hq k8s)

cat >study.toml <<'END'
environments = ["cartpole"]
seeds = 20
steps = 512
evaluation_episodes = 3

[[agents]]
agent = "ppo"
preset = "cleanrl"

[agents.space]
"ppo.clip" = { uniform = [0.05, 0.5], points = 5 }
learning_rate = { log_uniform = [1e-4, 1e-2], points = 10 }
END
# the program of the tasks: the first try of every fifth task is killed, after a random time
mkdir bin marks
cat >bin/gradus <<END
#!/bin/bash
number=\$(grep -oP '(?<=--task )[0-9]+' <<<"\$*" || true)
if [ -n "\$number" ] && [ \$((number % 5)) = 0 ] && [ ! -e "$dir/marks/\$number" ]; then
  touch "$dir/marks/\$number"
  exec timeout -s KILL "0.0\$((RANDOM % 5 + 1))" "$gradus" "\$@"
fi
exec "$gradus" "\$@"
END
chmod +x bin/gradus
PATH=$dir/bin:$venv/bin:$PATH

began=$(date +%s.%N)
"$gradus" sweep study.toml --out whole --quiet
alone=$(awk -v b="$began" -v e="$(date +%s.%N)" 'BEGIN { printf "%.1f", e - b }')
echo "one process: $alone s"

# Writes the report of a folder, and compares it with that of one process.
finish() {
  local made
  made=$("$gradus" sweep study.toml --out "$1" --list | grep -c ',made$' || true)
  "$gradus" sweep study.toml --out "$1" --quiet
  for file in results.csv points.csv responses.csv effects.csv summary.md response.svg effects.svg heat.svg coordinates.svg; do
    cmp "whole/$file" "$1/$file"
  done
  echo "$1: $made of 1000 runs made by tasks, $(ls marks | wc -l) tasks killed, the report has the same bytes; $2"
  rm -f marks/*
}

for kind in "${kinds[@]}"; do
  began=$(date +%s.%N)
  took() { awk -v b="$began" -v e="$(date +%s.%N)" 'BEGIN { printf "%.1f s", e - b }'; }
  case $kind in
  xargs)
    # the processor time of a task beyond that of a run in one process; nothing is killed
    cpu() { local t; t=$( { TIMEFORMAT='%U %S'; time "$@" >/dev/null 2>&1; } 2>&1 ); awk '{ print $1 + $2 }' <<<"$t"; }
    one=$(cpu "$gradus" sweep study.toml --out timed --task 1-1000 --jobs 1 --quiet)
    many=$(cpu bash -c "seq 1000 | xargs -P 2 -n 1 '$gradus' sweep study.toml --out timed-many --jobs 1 --quiet --task")
    awk -v a="$one" -v b="$many" 'BEGIN { printf "processor time: %.1f ms for a run in one process, %.1f ms for a task: overhead %.1f ms\n", a, b, b - a }'
    began=$(date +%s.%N)
    # xargs itself ends when a command is killed
    seq 1000 | xargs -P 2 -n 1 sh -c 'gradus sweep study.toml --out xargs --jobs 1 --quiet --task "$1" 2>/dev/null || true' sh
    finish xargs "$(took)"
    ;;
  slurm)
    if ! command -v slurmctld >/dev/null; then
      as_root=$([ "$(id -u)" = 0 ] || echo sudo)
      $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq slurm-wlm >/dev/null
    fi
    [ "$(id -u)" = 0 ] || { echo "slurm: skipped, because its daemons need root" >&2; exit 1; }
    host=$(hostname -s)
    mkdir -p slurm/state slurm/spool /run/munge
    [ -e /etc/munge/munge.key ] || { head -c 1024 /dev/urandom >/etc/munge/munge.key; }
    chown munge /etc/munge/munge.key /run/munge /var/log/munge /var/lib/munge && chmod 400 /etc/munge/munge.key
    if ! munge -n >/dev/null 2>&1; then
      runuser -u munge -- munged --socket /run/munge/munge.socket.2
      pids+=("$(cat /run/munge/munged.pid)")
    fi
    cat >slurm/slurm.conf <<END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=$dir/slurm/state
SlurmdSpoolDir=$dir/slurm/spool
SlurmctldPidFile=$dir/slurm/ctld.pid
SlurmdPidFile=$dir/slurm/d.pid
SlurmctldLogFile=$dir/slurm/ctld.log
SlurmdLogFile=$dir/slurm/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_min_interval=0,sched_interval=1,batch_sched_delay=0,default_queue_depth=1000
ReturnToService=2
MaxJobCount=5000
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
    export SLURM_CONF=$dir/slurm/slurm.conf
    slurmctld -D >/dev/null 2>&1 &
    pids+=($!)
    sleep 2
    slurmd -D >/dev/null 2>&1 &
    pids+=($!)
    for _ in $(seq 60); do sinfo -h -o %T 2>/dev/null | grep -q idle && break; sleep 1; done
    gradus sweep study.toml --out slurm-runs --emit slurm >slurm.sh
    # a machine of any size
    sed -i '/--mem=/d' slurm.sh
    began=$(date +%s.%N)
    sbatch --wait slurm.sh >/dev/null || true # killed tasks are failures
    finish slurm-runs "$(took), SLURM $(sbatch --version | cut -d' ' -f2)"
    ;;
  hq)
    gradus sweep study.toml --out hq-runs --emit hq >hq.sh
    # PyPI's package has the cluster and no program `hq`: this one submits what the script asks for
    cat >bin/hq <<END
#!$venv/bin/python
import sys
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

words = sys.argv[1:]
assert words[0] == "submit"
first, last = words[words.index("--array") + 1].split("-")
command = words[words.index("--") + 1:]
with LocalCluster() as cluster:
    cluster.start_worker(WorkerConfig(cores=$(nproc)))
    client, job = cluster.client(), Job("$dir", max_fails=1000)
    for number in range(int(first), int(last) + 1):
        job.program(command, cwd="$dir", env={"HQ_TASK_ID": str(number), "PATH": "$dir/bin:/usr/bin:/bin"}, stdout=None, stderr=None)
    client.wait_for_jobs([client.submit(job)], raise_on_error=False)
END
    chmod +x bin/hq
    began=$(date +%s.%N)
    bash hq.sh >/dev/null 2>&1 || true # killed tasks are failures
    finish hq-runs "$(took), hyperqueue $("$venv/bin/python" -c 'import importlib.metadata as m; print(m.version("hyperqueue"))')"
    ;;
  k8s)
    gradus sweep study.toml --out k8s-runs --emit k8s >k8s.yaml
    kubernetes-validate --strict k8s.yaml >/dev/null
    echo "k8s: the file is valid (its kind's schema, strict); it was not run"
    ;;
  *)
    echo "clusters: expected xargs, slurm, hq or k8s, got $kind" >&2
    exit 2
    ;;
  esac
done
