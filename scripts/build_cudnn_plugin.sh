#!/usr/bin/env bash
# Builds the plug-in by which GPUs run attention and convolutions on cuDNN:
#
#   build_cudnn_plugin.sh [TO]        TO as in build/release/bin/libridge_cudnn.so
#   build_cudnn_plugin.sh --headers   downloads what is missing, with which CMake builds it
#
# Downloads headers to build/deps/cudnn: those of cuDNN's C++ frontend (11 MB), and, without
# /usr/local/cuda/include/cudnn.h, what scripts/build_cudnn_ask.sh downloads (380 MB).  Needs
# python3 with pip or venv; two minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

to=${1:-build/release/bin/libridge_cudnn.so}
folder=build/deps/cudnn
toolkit=/usr/local/cuda/include

fail() {
  echo "build_cudnn_plugin: cuDNN's headers are missing, and $1 could not be downloaded. hint: make the Python package \
index reachable, or put the wheels of scripts/requirements-cudnn.txt into a folder and set PIP_FIND_LINKS to it" >&2
  exit 1
}

download_frontend() {
  local pip=(python3 -m pip)
  if ! "${pip[@]}" --version >/dev/null 2>&1; then
    python3 -m venv build/deps/pip
    pip=(build/deps/pip/bin/python -m pip)
  fi
  mkdir -p "$folder/wheels"
  grep -A1 '^nvidia-cudnn-frontend==' scripts/requirements-cudnn.txt >"$folder/wheels/frontend.txt"
  "${pip[@]}" download --quiet --no-deps --require-hashes --only-binary=:all: \
    --implementation cp --python-version 3.11 --abi cp311 --platform manylinux_2_28_x86_64 \
    --platform manylinux_2_27_x86_64 --dest "$folder/wheels" \
    --requirement "$folder/wheels/frontend.txt" || fail "the wheel nvidia-cudnn-frontend (11 MB)"
  python3 -m zipfile --extract "$folder"/wheels/nvidia_cudnn_frontend-*.whl "$folder"
  rm -rf "$folder/wheels"
}

if [[ ! -f $folder/include/cudnn_frontend.h ]]; then
  if [[ -f $toolkit/cudnn.h && -f $toolkit/cuda_runtime_api.h ]]; then
    download_frontend
  else
    scripts/build_cudnn_ask.sh || fail "the wheels that have them (380 MB)"
  fi
fi
if [[ $to == --headers ]]; then
  echo "build_cudnn_plugin: headers are in $folder"
  exit
fi
mkdir -p "$(dirname "$to")"
"${CXX:-g++}" -std=c++20 -O1 -fPIC -shared -fvisibility=hidden -Wall -Wextra -I. \
  -isystem "$folder/include" -isystem "$folder/nvidia/cudnn/include" \
  -isystem "$folder/nvidia/cu13/include" -isystem "$toolkit" plugins/cudnn/ridge_cudnn.cc \
  -o "$to" -ldl -Wl,--no-undefined
strip "$to"
echo "build_cudnn_plugin: wrote $to"
