#!/usr/bin/env bash
# The plan of a step on two and four ranks beside the step of virtual compute: usage: tests/dist/virtual_ranks.sh build/release/bin/ridge
#
# Network namespaces with links of 300 Mbit/s; the mean error is at most 5 %, the largest 10 %.
# Root; Debian packages iproute2, openmpi-bin.
set -euo pipefail

if [ "$(id -u)" -ne 0 ] || ! command -v ip tc mpirun.openmpi >/dev/null; then
  echo "virtual ranks: skipped: needs root, iproute2 and Open MPI"
  exit 0
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec python3 bench/virtual_ranks.py --ridge "$1" --ranks 2,4 --mbit 300 --rounds 3 --most-error 0.05 bert:16
