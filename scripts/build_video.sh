#!/usr/bin/env bash
# Builds the plug-in for videos against libav: build_video.sh [TO], TO as in
# build/release/lib/ridge/libridge_video.so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

to=${1:-build/release/lib/ridge/libridge_video.so}
libraries=(-lavformat -lavcodec -lswscale -lavutil)
compile=("${CXX:-g++}" -std=c++20 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -I.)
if ! echo '#include <libavformat/avformat.h>' | "${CXX:-g++}" -xc++ -E - >/dev/null 2>&1; then
  echo "build_video: libav's headers are not there. hint: apt-get install libavformat-dev" \
    "libavcodec-dev libswscale-dev" >&2
  exit 1
fi
mkdir -p "$(dirname "$to")"
"${compile[@]}" plugins/video/video_plugin.cc -o "$to" "${libraries[@]}" -Wl,--no-undefined
echo "build_video: wrote $to"
