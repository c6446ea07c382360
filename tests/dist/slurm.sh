#!/usr/bin/env bash
# `ridge launch --on slurm` under a real Slurm of one node, on the loopback:
# usage: tests/dist/slurm.sh build/release/bin/ridge
#
# A training is submitted, asked to stop as before a time limit (exit 75), requeued by its own script, and goes on; the
# parameters are those of an undisturbed run.  Then one whose rank is killed.  `srun --mpi=pmix` and Open MPI.
# Root; Debian packages munge, slurmctld, slurmd, slurm-client.  Ends what it starts, and keeps its files in a temporary folder.
set -euo pipefail

ridge=$(realpath "$1")
for program in munged slurmctld slurmd sbatch srun scontrol; do
  command -v $program >/dev/null || { echo "no $program. hint: apt-get install munge slurmctld slurmd slurm-client" >&2; exit 1; }
done
folder=$(mktemp -d /var/tmp/ridge-slurm-XXXXXX)
chmod 755 "$folder"
export SLURM_CONF=$folder/slurm.conf RIDGE_RECEIPTS=off

finish() {
  local code=$?
  if [ $code -ne 0 ]; then
    for log in "$folder"/work/slurm-*.out "$folder"/*.log; do if [ -f "$log" ]; then echo "--- $log"; tail -n 30 "$log"; fi; done >&2
  fi
  for name in slurmctld slurmd munged; do if [ -f "$folder/$name.pid" ]; then kill "$(cat "$folder/$name.pid")" || true; fi; done
  sleep 2
  rm -rf "$folder"
  exit $code
}
trap finish EXIT

mkdir "$folder/state" "$folder/spool" "$folder/work"
if ! munge -n >/dev/null 2>&1; then
  mkdir -p /run/munge /var/log/munge /var/lib/munge /etc/munge
  [ -f /etc/munge/munge.key ] || head -c 1024 /dev/urandom >/etc/munge/munge.key
  chown -R munge:munge /run/munge /var/log/munge /var/lib/munge /etc/munge
  chmod 400 /etc/munge/munge.key
  chmod 755 /run/munge
  touch "$folder/munged.pid"
  chown munge "$folder/munged.pid"
  su -s /bin/sh munge -c "/usr/sbin/munged --pid-file=$folder/munged.pid"
fi

cpus=$(nproc)
cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
AuthType=auth/munge
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ReturnToService=2
KillWait=10
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$cpus Boards=1 SocketsPerBoard=1 CoresPerSocket=$cpus ThreadsPerCore=1 State=UNKNOWN
PartitionName=all Nodes=$(hostname -s) Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
END
slurmctld
slurmd
for _ in $(seq 60); do if sinfo -h -o %T 2>/dev/null | grep -q idle; then break; fi; sleep 1; done
sinfo

cd "$folder/work"
train=(train mlp:hidden=32 --data synthetic --slices 4 --steps 30000 --checkpoint-every 200 --threads 1 -q)
"$ridge" "${train[@]}" --sums tree --out alone

# wait_for SECONDS TEXT COMMAND...: until the command's output has the text.
wait_for() {
  local seconds=$1 text=$2
  shift 2
  for _ in $(seq $((seconds * 5))); do
    if "$@" 2>/dev/null | grep -q -- "$text"; then return; fi
    sleep 0.2
  done
  echo "'$*' does not say '$text':" >&2
  "$@" >&2 || true
  return 1
}

# A requeued job is eligible two minutes later, unless it is told; its first step still tidies up.
soon() {
  wait_for 60 'JobState=PENDING' scontrol show job "$1"
  sleep 8
  scontrol update JobId="$1" StartTime=now
}

# submitted NAME: its job's number, under way with a checkpoint.
submitted() {
  local job
  job=$("$ridge" launch --on slurm --devices 2 --mpi openmpi --submit -q -- "${train[@]}" --out "$1" | grep -o '[0-9]*$')
  wait_for 60 step- ls "$1/checkpoints" >&2
  echo "$job"
}

equal_to_alone() {
  hash() { sed -n 's/.*"parameters_sha256": "\(.*\)".*/\1/p' "$1/summary.json"; }
  test -n "$(hash alone)"
  test "$(hash "$1")" = "$(hash alone)"
}

echo "=== asked to stop, requeued, done"
job=$(submitted stopped)
scancel --signal=TERM "$job"
wait_for 60 '"state": "stopped"' cat stopped/status.json
wait_for 60 'Restarts=1' scontrol show job "$job"
soon "$job"
wait_for 120 '"state": "done"' cat stopped/status.json
wait_for 30 'JobState=COMPLETED' scontrol show job "$job"
equal_to_alone stopped

echo "=== a rank is killed, requeued, done"
job=$(submitted killed)
victim=$(scontrol listpids "$job" | awk '$4 == 1 && $5 == 0 {print $1}' | head -n 1)
if [ -z "$victim" ]; then victim=$(scontrol listpids "$job" | awk '$3 == 0 {print $1}' | tail -n 1); fi
kill -9 "$victim"
wait_for 60 'Restarts=1' scontrol show job "$job"
soon "$job"
wait_for 120 '"state": "done"' cat killed/status.json
equal_to_alone killed

echo "=== slurm: passed"
