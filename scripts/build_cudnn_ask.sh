#!/usr/bin/env bash
# Builds plugins/cudnn/cudnn_ask and planning_driver against the wheels of requirements-cudnn.txt,
# which it downloads first (380 MB): build_cudnn_ask.sh [FOLDER], FOLDER as in build/deps/cudnn.
# Needs python3 with pip; a minute.  RIDGE_CUDNN=FOLDER then lets `ridge plan --on` ask.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-build/deps/cudnn}
requirements=scripts/requirements-cudnn.txt

# The wheels of any Python would do: only headers and libraries are taken from them.
download() {
  rm -rf "$folder"
  mkdir -p "$folder/wheels"
  python3 -m pip download --quiet --no-deps --require-hashes --only-binary=:all: \
    --implementation cp --python-version 3.11 --abi cp311 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
    --platform manylinux2014_x86_64 --dest "$folder/wheels" --requirement "$requirements"
  for wheel in "$folder"/wheels/*.whl; do
    python3 -m zipfile --extract "$wheel" "$folder"
  done
  rm -rf "$folder/wheels"
  cp "$requirements" "$folder/requirements.txt"
}

cmp -s "$requirements" "$folder/requirements.txt" || download
"${CXX:-g++}" -std=c++20 -Wall -Wextra -isystem "$folder/include" \
  -isystem "$folder/nvidia/cudnn/include" -isystem "$folder/nvidia/cu13/include" \
  plugins/cudnn/cudnn_ask.cc -o "$folder/cudnn_ask" -ldl
mkdir -p "$folder/planning_driver"
"${CXX:-g++}" -std=c++20 -Wall -Wextra -shared -fPIC -Wl,-soname,libcuda.so.1 \
  plugins/cudnn/planning_driver.cc -o "$folder/planning_driver/libcuda.so.1"
rm -rf "$folder/devices"
cp -r plugins/cudnn/devices "$folder/devices"
echo "build_cudnn_ask: wrote $folder/cudnn_ask"
