#!/usr/bin/env bash
# Runs each fuzz target of build/fuzz: fuzz.sh SECONDS [TARGET...], TARGET as in `onnx`.
# Limits: an input may not ask for more than 256 MiB at once, nor take more than a second.  The
# sanitizers make the targets about four times slower than the program, so they get 4 s.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=$1
shift
build=build/fuzz
targets=("$@")
if ((${#targets[@]} == 0)); then
  for program in "$build"/bin/*_fuzz; do targets+=("$(basename "$program" _fuzz)"); done
fi
for target in "${targets[@]}"; do
  corpus=$build/corpus/$target
  mkdir -p "$corpus"
  echo "fuzz: $target for $seconds s"
  log=$build/$target.log
  if ! "$build/bin/${target}_fuzz" -max_total_time="$seconds" -malloc_limit_mb=256 -timeout=4 \
    -rss_limit_mb=1024 -max_len=65536 -artifact_prefix="$build/$target-" -print_final_stats=1 \
    "$corpus" "tests/fuzz/corpus/$target" >"$log" 2>&1 </dev/null; then
    tail -60 "$log"
    echo "fuzz: $target found an input that breaks it: see $build/$target-*" >&2
    exit 1
  fi
  grep -E 'stat::(number_of_executed_units|peak_rss_mb|slowest_unit_time_sec)' "$log"
done
