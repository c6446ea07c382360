#!/usr/bin/env bash
# Builds the plug-in by which GPUs run attention and convolutions on cuDNN:
# build_cudnn_plugin.sh [TO], TO as in build/release/bin/libridge_cudnn.so.  Downloads the headers
# that are not there to build/deps/cudnn: those of cuDNN's C++ frontend (11 MB), and, without
# /usr/local/cuda/include/cudnn.h, what scripts/build_cudnn_ask.sh downloads (380 MB).  Needs
# python3 with pip; two minutes.  CMake builds the plug-in too, once the headers are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

to=${1:-build/release/bin/libridge_cudnn.so}
folder=build/deps/cudnn
toolkit=/usr/local/cuda/include

download_frontend() {
  mkdir -p "$folder/wheels"
  grep -A1 '^nvidia-cudnn-frontend==' scripts/requirements-cudnn.txt >"$folder/wheels/frontend.txt"
  python3 -m pip download --quiet --no-deps --require-hashes --only-binary=:all: \
    --implementation cp --python-version 3.11 --abi cp311 --platform manylinux_2_28_x86_64 \
    --platform manylinux_2_27_x86_64 --dest "$folder/wheels" \
    --requirement "$folder/wheels/frontend.txt"
  python3 -m zipfile --extract "$folder"/wheels/nvidia_cudnn_frontend-*.whl "$folder"
  rm -rf "$folder/wheels"
}

if [[ ! -f $folder/include/cudnn_frontend.h ]]; then
  if [[ -f $toolkit/cudnn.h ]]; then download_frontend; else scripts/build_cudnn_ask.sh; fi
fi
mkdir -p "$(dirname "$to")"
"${CXX:-g++}" -std=c++20 -O1 -fPIC -shared -fvisibility=hidden -Wall -Wextra -I. \
  -isystem "$folder/include" -isystem "$folder/nvidia/cudnn/include" \
  -isystem "$folder/nvidia/cu13/include" -isystem "$toolkit" plugins/cudnn/ridge_cudnn.cc \
  -o "$to" -ldl -Wl,--no-undefined
strip "$to"
echo "build_cudnn_plugin: wrote $to"
