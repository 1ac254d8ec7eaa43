#!/bin/sh
# Sets up everything that the tests need and runs them all: style, types, import contract, units, browser, wheel.
#   sh tests/run.sh                 into .venv
#   VENV=/path sh tests/run.sh      into an environment of your choice
#   sh tests/run.sh -k words        further words go to pytest
# All cores are used; a module's tests stay on one of them, so that slow fixtures are made once. The threads of numpy and
# torch would wait for each other on top of that (a Cholesky factor of 150 rows took ten times as long): each process has
# one. Modules stay in the order of their folders: by default those with the fewest tests come last, which are the slowest.
# Packages are not compiled ahead: most of torch's and transformers' modules are never imported.
# Needs Python 3.11 or later with venv; the browser set-up needs apt as root or through sudo.
set -eu
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}

[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
if [ -f tests/browser_setup.sh ]; then
    sh tests/browser_setup.sh
fi
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
exec "$venv/bin/python" -m pytest -n auto --dist loadscope --no-loadscope-reorder "$@"
