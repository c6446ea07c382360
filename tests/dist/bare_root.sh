#!/usr/bin/env bash
# Installs a wheel of ridge in a bare Debian, without compiler and network, and trains there.
#
#   tests/dist/bare_root.sh WHEEL ROOT [SUITE]   as root; makes ROOT with debootstrap if it is absent
#
# Checked: pip installs the file alone, with the plug-in of cuDNN; one OpenMP runtime in the running process; a CNN learns
# Fashion-MNIST from IDX files to 0.88; `--data fashion-mnist` names the package that has it, exit 4.
set -euo pipefail

wheel=$1 root=$2 suite=${3:-bookworm}
data=${RIDGE_DATA:-/usr/share/datasets/fashion-mnist}
least=0.88

if [[ ! -x $root/bin/sh ]]; then
  debootstrap --variant=minbase --include=python3,python3-pip,python3-venv "$suite" "$root"
fi

# inside COMMAND: in the root, without a network.
inside() {
  unshare --net --mount --pid --fork --mount-proc="$root/proc" chroot "$root" \
    /usr/bin/env -i PATH=/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root bash -euc "$1"
}

rm -rf "$root/wheel" "$root/idx" "$root/venv" "$root/runs"
mkdir -p "$root/wheel" "$root/idx" "$root/runs"
cp "$wheel" "$root/wheel/"
for file in "$data"/*.gz; do
  gunzip -c "$file" >"$root/idx/$(basename "${file%.gz}")"
done

echo "--- the root"
inside '. /etc/os-release; echo "$PRETTY_NAME, $(ldd --version 2>&1 | head -1)"
  for tool in gcc g++ cc c++ clang make cmake curl; do
    if command -v $tool; then echo "bare_root: the root has $tool" >&2; exit 1; fi; done'

echo "--- pip install"
inside 'python3 -m venv /venv && pip install --no-index --disable-pip-version-check /wheel/*.whl
  ridge --version && ridge doctor && test -s /venv/lib/ridge/libridge_cudnn.so'

echo "--- training"
inside 'cd /runs
  ridge train cnn --data idx:/idx --epochs 4 --batch 128 --seed 1 --out bare &
  process=$!
  for i in $(seq 300); do
    if [ -f bare/metrics.jsonl ]; then break; fi; sleep 0.1; done
  runtimes=$(grep -oE "/[^ ]*(libgomp|libomp|libiomp5)[^ ]*" /proc/$process/maps | sort -u)
  echo "OpenMP runtimes of the process: $runtimes"
  wait $process
  [ "$(wc -l <<<"$runtimes")" = 1 ]
  case $runtimes in /venv/lib/ridge/*) ;; *) exit 1 ;; esac
  python3 -c "
import json
accuracy = json.load(open(\"bare/summary.json\"))[\"test_accuracy\"]
print(\"test accuracy\", accuracy)
assert accuracy >= '"$least"', \"below '"$least"'\""'

echo "--- without the data set"
inside 'status=0; text=$(cd /runs && ridge train cnn --data fashion-mnist --epochs 1 2>&1) || status=$?
  echo "$text"; echo "exit $status"
  [ $status = 4 ] && grep -q dataset-fashion-mnist <<<"$text"'
echo "bare_root: passed ($suite)"
