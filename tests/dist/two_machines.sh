#!/usr/bin/env bash
# Late ranks between machines: usage: tests/dist/two_machines.sh build/release/bin/ridge
#
# Two network namespaces with a cable between them, each with a host name and a /dev/shm of its own, are two machines to Open MPI
# and to ridge.  A rank of the other machine is stopped; the cable is cut.  Both are named within ten seconds.
# Then the other machine does not see the run folder, into which both of them wrote checkpoints before.
# Root; Debian packages iproute2, openmpi-bin.
set -euo pipefail

ridge=$(realpath "$1")
folder=$(mktemp -d /var/tmp/ridge-machines-XXXXXX)
mkdir "$folder/job"
mark=$$  # names of interfaces are short
job=
finish() {
  local code=$?
  if [ -n "$job" ]; then kill -9 "$job" 2>/dev/null || true; fi
  for name in a b; do
    for process in $(ip netns pids "ridge-$mark-$name" 2>/dev/null); do kill -9 "$process" 2>/dev/null || true; done
    ip netns del "ridge-$mark-$name" 2>/dev/null || true
  done
  if [ $code -ne 0 ] && [ -f "$folder/said" ]; then cat "$folder/said" >&2; fi
  rm -rf "$folder"
  exit $code
}
trap finish EXIT

ip netns add "ridge-$mark-a"
ip netns add "ridge-$mark-b"
ip link add "ra$mark" netns "ridge-$mark-a" type veth peer name "rb$mark" netns "ridge-$mark-b"
for name in a b; do
  ip -n "ridge-$mark-$name" link set lo up
  ip -n "ridge-$mark-$name" addr add "10.77.0.$([ $name = a ] && echo 1 || echo 2)/24" dev "r$name$mark"
  ip -n "ridge-$mark-$name" link set "r$name$mark" up
done

# A command on the machine of an address.
cat >"$folder/on" <<END
#!/bin/bash
name=b; [ "\$1" = 10.77.0.1 ] && name=a
shift
exec ip netns exec ridge-$mark-\$name unshare -u -m bash -c 'hostname machine-'\$name'; mount -t tmpfs none /dev/shm; if [ '\$name' = b ] && [ -f $folder/hidden ]; then mount -t tmpfs none $folder/job; fi; exec bash -c "\$0"' "\$*"
END
chmod +x "$folder/on"

# start WORDS...: two ranks, one on each machine, once they have a checkpoint.
start() {
  rm -rf "$folder/job/run"
  "$folder/on" 10.77.0.1 "cd $folder; exec env RIDGE_RECEIPTS=off OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi -n 2 --host 10.77.0.1:1,10.77.0.2:1 \
    --bind-to none --mca plm_rsh_agent $folder/on --mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24 --mca btl tcp,self \
    $ridge train mlp:hidden=32 --data synthetic --threads 1 --slices 4 --steps 100000000 --checkpoint-every 100 --out job/run -q $*" >"$folder/said" 2>&1 &
  job=$!
  for _ in $(seq 300); do
    if compgen -G "$folder/job/run/checkpoints/step-*" >/dev/null; then return; fi
    kill -0 $job || return 1
    sleep 0.1
  done
  return 1
}

# named TEXT: within ten seconds a rank says it.
named() {
  local begin=$SECONDS
  for _ in $(seq 100); do
    if grep -q -- "$1" "$folder/said"; then
      grep '^ridge: rank' "$folder/said"
      echo "after $((SECONDS - begin)) s"
      return
    fi
    sleep 0.1
  done
  echo "nobody says '$1'" >&2
  return 1
}

echo "=== a rank of the other machine is stopped"
start
stopped=$(for process in $(ip netns pids "ridge-$mark-b"); do if [ "$(readlink /proc/"$process"/exe)" = "$ridge" ]; then echo "$process"; fi; done)
kill -STOP "$stopped"
named "rank 0: waited .* rank 1 is late: .*its process $stopped on machine-b does not run, or that machine is cut off (no heartbeat"
kill -9 "$stopped"
wait $job || echo "exit code $?"

echo "=== the cable is cut"
start
ip -n "ridge-$mark-b" link set "rb$mark" down
named "rank 0: waited .* rank 1 is late: .* on machine-b does not run, or that machine is cut off (no heartbeat"
kill -9 $job
wait $job 2>/dev/null || true
job=
echo "=== the other machine does not see the run folder"
ip -n "ridge-$mark-b" link set "rb$mark" up
touch "$folder/hidden"
if start --checkpoint-writers 2; then exit 1; fi
grep "^ridge: --checkpoint-writers 2: rank 1 does not see job/run of rank 0. hint: an --out that all machines share, or --checkpoint-writers 1" "$folder/said"
wait $job || echo "exit code $?"
start  # rank 0 writes
kill -9 $job
wait $job 2>/dev/null || true
job=
echo "=== two machines: passed"
