# Sourced by .ci/run and .ci/full: runs named parts, prints the time of each, ends at a failure.
# SKIP="name name" leaves parts out, and says so at the end; nothing else is skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

times=()
skipped=()

# part NAME COMMAND...: runs the command and notes its seconds; the first failure ends the run.
part() {
  local name=$1 start=$SECONDS
  shift
  if [[ " ${SKIP:-} " == *" $name "* ]]; then
    skipped+=("$name")
    echo "=== $name: skipped, as SKIP asks"
    return
  fi
  echo "=== $name: $*"
  "$@" </dev/null
  times+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
  echo "=== $name: passed in $((SECONDS - start)) s"
}

# nothing_skipped COMMAND...: fails too when ctest reports a test that did not run, or a test within
# a program is skipped that could run here (tests/main/main.cc, tests/e2e/_ridge.py).
nothing_skipped() {
  local log
  log=$(mktemp)
  RIDGE_NO_SKIPS=1 "$@" | tee "$log"
  if grep -q -e '\*\*\*Skipped' -e '\*\*\*Not Run' "$log"; then
    echo "=== a test was skipped" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

all_passed() {
  echo "=== all parts passed"
  printf '%s\n' "${times[@]}"
  printf '%5d s  %s\n' "$SECONDS" "together"
  if ((${#skipped[@]})); then echo "skipped: ${skipped[*]}"; fi
}
