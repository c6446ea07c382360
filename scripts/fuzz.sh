#!/usr/bin/env bash
# Runs the fuzz targets of build/fuzz, one on each core: fuzz.sh SECONDS [TARGET...], TARGET as in
# `onnx`.  The promise is 1 s and 256 MiB for an input of up to 1 MB (tests/e2e/onnx_hostile.py asks
# the program itself); here one allocation may have 256 MiB, and an input 20 s, since the sanitizers
# and busy machines make everything many times slower.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=$1
shift
build=build/fuzz
targets=("$@")
if ((${#targets[@]} == 0)); then
  for program in "$build"/bin/*_fuzz; do targets+=("$(basename "$program" _fuzz)"); done
fi

# What is found grows build/fuzz/corpus; an input that breaks something is left in build/fuzz.
run() {
  local target=$1 log=$build/$1.log
  mkdir -p "$build/corpus/$target"
  if ! "$build/bin/${target}_fuzz" -max_total_time="$seconds" -malloc_limit_mb=256 -timeout=20 \
    -rss_limit_mb=2048 -max_len=16384 -artifact_prefix="$build/$target-" -print_final_stats=1 \
    "$build/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1 </dev/null; then
    tail -60 "$log"
    echo "fuzz: $target found an input that breaks it: see $build/$target-*" >&2
    return 1
  fi
  echo "fuzz: $target: $(grep -oP 'executed_units: *\K[0-9]+' "$log") inputs in $seconds s, none" \
    "breaks it; peak $(grep -oP 'peak_rss_mb: *\K[0-9]+' "$log") MiB with the sanitizers"
}

running=0
failed=0
for target in "${targets[@]}"; do
  if ((running == $(nproc))); then
    wait -n || failed=1
    running=$((running - 1))
  fi
  run "$target" &
  running=$((running + 1))
done
while ((running > 0)); do
  wait -n || failed=1
  running=$((running - 1))
done
exit "$failed"
