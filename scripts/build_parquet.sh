#!/usr/bin/env bash
# Builds the plug-in for Parquet files against the package pyarrow, which has Arrow's libraries and
# headers: build_parquet.sh [PYTHON [TO]], PYTHON with pyarrow (python3), TO as in
# build/release/lib/ridge/libridge_parquet.so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${1:-python3}
to=${2:-build/release/lib/ridge/libridge_parquet.so}
if ! arrow=$("$python" -c 'import os, pyarrow; print(os.path.dirname(pyarrow.__file__))'); then
  echo "build_parquet: $python has no pyarrow. hint: $python -m pip install pyarrow" >&2
  exit 1
fi
libraries=()
for name in arrow parquet; do
  library=$(find "$arrow" -maxdepth 1 -name "lib$name.so.*" | sort | head -1)
  if [[ -z $library ]]; then
    echo "build_parquet: $arrow has no lib$name.so" >&2
    exit 1
  fi
  libraries+=("-l:$(basename "$library")")
done
mkdir -p "$(dirname "$to")"
"${CXX:-g++}" -std=c++20 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -I. \
  -isystem "$arrow/include" plugins/parquet/parquet_plugin.cc -o "$to" -L"$arrow" \
  "${libraries[@]}" -Wl,-rpath,"$arrow" -Wl,--no-undefined
echo "build_parquet: wrote $to"
