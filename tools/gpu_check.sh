#!/usr/bin/env bash
# What a GPU can tell, in ten minutes: driver, kernels, trainings, equal bits, times, and whether plans keep
# what they promise.
#
#   tools/gpu_check.sh                 records go to build/gpu_check; PRESET=release has the program
#   bash share/ridge/gpu_check.sh      of an installed ridge: records go to gpu_check; without the
#                                      tests of driver and kernels, which a source tree has
#   MODELS="cnn:64" BITS="cnn:64" SMALL=mlp STEPS=5 PRECISION=f32 PEER= tools/gpu_check.sh
#
# MODELS are timed; those of BITS are trained twice, killed and resumed, in PRECISION.
# PEER is a Python with PyTorch, beside which the models are timed: python3, if it has one.
# A model's plan keeps its promises when what was measured is at most so far from it; "": not judged
#   BYTES_OFF=0.02 STEP_OFF=0.1     memory and seconds a step, as shares
# A target that is missed is said and fails nothing: speed and memory beside PyTorch's, model FLOPs,
# the wait for input in TRAIN_STEPS=100 steps, FIRST_STEP_S=5 seconds until the first step is done.
# record.json has results, bytes, targets, profiles and the device, for bench/results.
#
# It changes no setting of the GPU.  A part that fails stops no other; the exit code is that of all.
# Correctness, bits and the steps of MODELS come first, then PyTorch, which compiles for minutes, then the
# rest.  What does not fit into TIME_S=600 seconds is left out and said.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
if [ -x "$here/../../bin/ridge" ]; then
  bin=$here/../../bin peer_script=$here/bench_gpu_torch.py out=${OUT:-gpu_check}
else
  cd "$here/.." || exit 1
  bin=build/${PRESET:-release}/bin peer_script=bench/peers/bench_gpu_torch.py out=${OUT:-build/gpu_check}
fi
MODELS=${MODELS-gpt2:8 gpt2:16 bert_large:32 resnet50:256} BITS=${BITS-gpt2:8 resnet50:256}
TIME_S=${TIME_S:-600}
BYTES_OFF=${BYTES_OFF-0.02} STEP_OFF=${STEP_OFF-0.1} FIRST_STEP_S=${FIRST_STEP_S-5}
TRAIN_STEPS=${TRAIN_STEPS:-100} STEPS=${STEPS:-30} PRECISION=${PRECISION:-bf16} PEER=${PEER-python3}
export RIDGE_SOURCE_DIR=$PWD bin out STEPS TRAIN_STEPS PRECISION PEER BYTES_OFF STEP_OFF FIRST_STEP_S
failed=0
mkdir -p "$out"
rm -rf "$out"/{cpu,bits,train_*,ranks.log,promises.log,bits_*.log,peer_*.log}
rm -f "$out"/{doctor,bench_device,record,step_*,profile_*}.json
: > "$out/summary"

# Runs in what is left of TIME_S; the last 20 s are for judging.
part() {  # LIMIT_S NAME COMMAND...
  local left=$((TIME_S - SECONDS - 20))
  rm -f "$out/$2.log"
  if [ "$left" -ge "$1" ]; then
    run_part "$@"
  elif [ "$left" -lt 1 ]; then
    echo "$2: not run, $TIME_S s are over (TIME_S)" | tee -a "$out/summary"
  else
    cut=yes run_part "$left" "${@:2}"
  fi
}
# A part that was cut has no result and fails nothing.
run_part() {  # LIMIT_S NAME COMMAND...
  local limit=$1 name=$2 start=$SECONDS
  shift 2
  timeout -k 10 "$limit" bash -c '"$@"' part "$@" > "$out/$name.log" 2>&1
  local code=$?
  if [[ ${cut-} = yes && $code =~ ^(124|137)$ ]]; then
    echo "$name: not run, ended when $TIME_S s were over (TIME_S)" | tee -a "$out/summary"
    return
  fi
  [ $code = 0 ] || failed=1
  echo "$name: exit $code, $((SECONDS - start)) s" | tee -a "$out/summary"
}

# Two runs, and one that ends half way and is resumed: the same parameters.
twice() {  # STEPS MODEL WORDS...
  local steps=$1 run
  local words=(train "${@:2}" --data synthetic --device cuda -q)
  rm -rf "$out/first" "$out/second" "$out/resumed"
  for run in first second; do
    "$bin/ridge" "${words[@]}" --steps "$steps" --out "$out/$run" || return 1
  done
  "$bin/ridge" "${words[@]}" --steps "$((steps / 2))" --out "$out/resumed" || return 1
  "$bin/ridge" train --resume "$out/resumed" --steps "$steps" -q || return 1
  grep -h parameters_sha256 "$out"/{first,second,resumed}/summary.json | sort | uniq -c | tee "$out/hashes"
  [ "$(awk '{ print $1 }' "$out/hashes")" = 3 ]
}
# A run that is killed after its first checkpoint and resumed: the parameters of one that was not.
killed() {  # STEPS_TO_THE_CHECKPOINT MODEL WORDS...
  local first=$1
  local words=(train "${@:2}" --data synthetic --device cuda --steps $((first * 10)) --checkpoint-every "$first" --keep 2 -q)
  rm -rf "$out"/{whole,killed}
  "$bin/ridge" "${words[@]}" --out "$out/whole" || return 1
  "$bin/ridge" "${words[@]}" --out "$out/killed" &
  local run=$!
  until [ -e "$out/killed/checkpoints/step-$first" ] || ! kill -0 "$run"; do sleep 0.005; done
  kill -9 "$run"
  wait "$run"
  if [ -e "$out/killed/summary.json" ]; then
    echo "it ended before it was killed: nothing was checked"
    return 1
  fi
  "$bin/ridge" train --resume "$out/killed" -q || return 1
  "$bin/ridge" compare "$out/whole" "$out/killed"
}
# The bits of a model's own libraries: cuDNN's, cuBLASLt's in 16 bits, channels-last.
same_bits() {  # MODEL WORDS...
  local out=$out/bits
  mkdir -p "$out"
  twice 6 "$@" && killed 4 "$@"
  local code=$?
  rm -rf "$out"
  return $code
}
# The optimizer's state on the host: the same parameters.
offloaded() {
  rm -rf "$out/offloaded"
  "$bin/ridge" train "$1" --data synthetic --device cuda --steps "$STEPS" --offload optimizer --out "$out/offloaded" || return 1
  "$bin/ridge" compare "$out/first" "$out/offloaded"
}
# Parameters on the host: twice the same parameters, and the loss of all on the GPU.
placed() {
  local run
  rm -rf "$out"/placed_{1,2}
  for run in 1 2; do
    "$bin/ridge" train "$1" --data synthetic --device cuda --steps "$STEPS" --place '*=cpu' --out "$out/placed_$run" || return 1
  done
  "$bin/ridge" compare "$out/placed_1" "$out/placed_2" || return 1
  same_loss "$out/first" "$out/placed_1"
}
# One GPU and two: the same parameters.
ranks() {
  local count
  rm -rf "$out"/ranks_{1,2}
  for count in 1 2; do
    "$bin/ridge" train "$1" --data synthetic --device cuda --steps "$STEPS" --slices 2 --sums tree \
      --devices $count --out "$out/ranks_$count" || return 1
  done
  "$bin/ridge" compare "$out/ranks_1" "$out/ranks_2"
}
beside_cpu() {
  "$bin/ridge" train "$1" --data synthetic --device cpu --steps "$STEPS" --out "$out/cpu" -q || return 1
  same_loss "$out/first" "$out/cpu"
}
same_loss() {  # GPU'S_RUN OTHER_RUN
  python3 - "$1/summary.json" "$2/summary.json" <<'PYTHON'
import json, sys
gpu, other = (json.load(open(name))["loss"] for name in sys.argv[1:])
print(f"loss on the GPU {gpu}, in the other run {other}")
sys.exit(not abs(gpu - other) <= 1e-3 * abs(other))
PYTHON
}
# What a command prints is a file, too.
kept() {  # FILE COMMAND...
  set -o pipefail
  "${@:2}" | tee "$out/$1"
}
# The report, and the same for programs.
doctor() {
  "$bin/ridge" doctor --json > "$out/doctor.json"
  "$bin/ridge" doctor
}
# A run that reads data: what it waited for input is in metrics.jsonl.
trained() {  # NAME WORDS...
  rm -rf "$out/train_$1"
  "$bin/ridge" train "${@:2}" --data synthetic --device cuda --steps "$TRAIN_STEPS" --out "$out/train_$1" || return 1
  rm -rf "$out/train_$1/checkpoints"
}
# Why PyTorch can't be timed; nothing where it can.
lacks_peer() {
  [ -n "$PEER" ] || { echo "PEER names none"; return; }
  timeout -k 10 60 "$PEER" -c '
try:
    import torch, torchvision, transformers
    print("" if torch.cuda.is_available() else "its PyTorch finds no GPU")
except Exception as error:
    print(str(error).partition("\n")[0] or type(error).__name__)' 2> "$out/peer.log" || echo "$PEER does not run"
}

export -f same_bits twice killed kept doctor trained offloaded placed ranks beside_cpu same_loss

# MODEL:BATCH as a name of files, and as words of a command.
name_of() {
  echo "${1//[^a-zA-Z0-9]/_}"
}
job_of() {
  job=("${1%:*}" --batch "${1##*:}" --precision "$PRECISION")
}

if ! timeout -k 10 60 "$bin/ridge" plan mlp:hidden=8,layers=1 --device cuda > "$out/open.log" 2>&1; then
  tail -n 1 "$out/open.log"
  echo "no GPU was checked" | tee "$out/summary"
  exit 6
fi
grep -q "run on cuDNN" "$out/open.log" || echo "no cuDNN: speeds are not judged, attention and \
convolutions run on ridge's own kernels" | tee -a "$out/summary"
small=${SMALL:-gpt:vocab=64,context=32,hidden=64,layers=2,heads=4}
part 30 doctor doctor
if [ -x "$bin/ridge_gpu_test" ]; then
  part 60 driver "$bin/ridge_gpu_test" --gtest_filter='Gpu*Test.*'
  part 240 kernels "$bin/ridge_gpu_test" --gtest_filter='GpuKernels.*'
else
  echo "driver, kernels: not run, an installed ridge has no tests" | tee -a "$out/summary"
fi
part 60 twice twice "$STEPS" "$small"
part 60 killed killed $((STEPS * 4)) "$small"
part 60 offloaded offloaded "$small"
part 60 placed placed "$small"
gpus=$("$bin/ridge" doctor | grep -c '^ *cuda:[0-9]')
if [ "$gpus" -ge 2 ]; then
  part 60 ranks ranks "$small"
else
  echo "ranks: not run, one GPU is here" | tee -a "$out/summary"
fi
part 60 beside_cpu beside_cpu "$small"
for model in $BITS; do
  job_of "$model"
  part 120 "bits_$(name_of "$model")" same_bits "${job[@]}"
done
timed=()
for model in $MODELS; do
  name=$(name_of "$model")
  job_of "$model"
  step=("$bin/ridge" bench step "${job[@]}" --device cuda --json)
  part 60 "warm_$name" "${step[@]}" --steps 1  # its kernels are compiled
  part 60 "bench_$name" kept "step_$name.json" "${step[@]}" --steps "$STEPS"
  [ ! -s "$out/step_$name.json" ] || timed+=("$out/step_$name.json")
done
lacking=$(lacks_peer)
if [ -z "$lacking" ]; then
  for model in $MODELS; do
    for mode in eager compile; do
      part 120 "peer_$(name_of "$model")_$mode" "$PEER" "$peer_script" "${model%:*}" "${model##*:}" "$mode" "$STEPS"
    done
  done
else
  echo "peer not available: $lacking" | tee -a "$out/summary"
fi
for model in $MODELS; do
  name=$(name_of "$model")
  job_of "$model"
  part 120 "train_$name" trained "$name" "${job[@]}"
  part 120 "train_${name}_in_line" trained "${name}_in_line" "${job[@]}" --copy-stream off
  part 60 "profile_$name" kept "profile_$name.json" "$bin/ridge" profile "${job[@]}" --device cuda --json
done
part 120 bench_device kept bench_device.json "$bin/ridge" bench device --device cuda --dry-run --json
[ ${#timed[@]} = 0 ] || run_part 20 promises python3 "$here/gpu_judge.py" promises "${timed[@]}"
run_part 20 targets python3 "$here/gpu_judge.py" targets "$out"
run_part 20 attributes python3 "$here/gpu_judge.py" attributes "$out"
run_part 20 record python3 "$here/gpu_judge.py" record "$out"
tail -n 3 "$out"/{kernels,twice,killed,offloaded,placed,ranks,beside_cpu}.log "$out"/bits_*.log 2> "$out/none.log"
tail -q -n 1 "$out"/step_*.json "$out"/peer_*.log 2> "$out/none.log"
cat "$out"/{promises,targets,attributes,record}.log 2> "$out/none.log"
exit $failed
