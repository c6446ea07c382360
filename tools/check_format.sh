#!/usr/bin/env bash
# Fails when a C++ file is not formatted as clang-format 14 does it; with --fix, formats them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if command -v clang-format-14 >/dev/null; then
  program=clang-format-14
elif clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  program=clang-format
else
  echo "format: clang-format 14 is missing: apt-get install clang-format-14" >&2
  exit 1
fi

arguments=(--dry-run -Werror)
if [[ ${1:-} == --fix ]]; then arguments=(-i); fi

folders=()
for folder in ridge tests bench examples; do
  if [[ -d $folder ]]; then folders+=("$folder"); fi
done
count=0
if ((${#folders[@]})); then
  mapfile -t files < <(find "${folders[@]}" -name '*.h' -o -name '*.cc' | sort)
  count=${#files[@]}
  if ((count)); then "$program" "${arguments[@]}" --style=file "${files[@]}"; fi
fi
echo "format: $count files as clang-format 14 has them"
