#!/usr/bin/env bash
# Runs the pages of docs/recipes/ with the program of a wheel alone, in empty folders.
#
#   tests/dist/recipes.sh WHEEL VENV     makes VENV anew, with the wheel as its only package
#
# PYTHON has what tests/e2e/recipes.py needs to lay out pictures and to judge exports; the pages
# themselves see VENV/bin/ridge first on PATH.
set -euo pipefail

wheel=$1 venv=$2
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${PYTHON:-$source/build/deps/test-venv/bin/python}

python3 -m venv --clear "$venv"
"$venv/bin/pip" install --quiet --no-index --disable-pip-version-check "$wheel"
venv=$(cd "$venv" && pwd)
"$venv/bin/pip" list --disable-pip-version-check
echo "program: $(PATH=$venv/bin:$PATH bash -c 'command -v ridge'), $("$venv/bin/ridge" --version)"
# No library but those of the wheel and of every system.
if ldd "$venv/bin/ridge" | grep -E "not found|$source/build/(release|deps)"; then
  echo "recipes: the program takes a library that the wheel does not carry" >&2
  exit 1
fi
RIDGE_SLOW_RECIPES=1 RIDGE=$venv/bin/ridge RIDGE_SOURCE_DIR=$source "$python" "$source/tests/e2e/recipes.py" -v
echo "recipes: passed with $(basename "$wheel")"
