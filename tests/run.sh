#!/bin/sh
# Sets up everything that the tests need and runs them: style, types, import contract, units, browser, wheel.
#   sh tests/run.sh                 into .venv
#   VENV=/path sh tests/run.sh      into an environment of your choice
#   sh tests/run.sh -k words        further words go to pytest
#   sh tests/run.sh -m long         the tests that repeat at length what others show, which are left out otherwise
# All cores are used, with a process each: one more took no less time. A module's tests stay in one process, so that slow
# fixtures are made once. Each process has one thread: those of numpy and torch would wait for each other (a Cholesky factor
# of 150 rows took ten times as long). Modules keep the order of tests/conftest.py: by default those with the fewest tests
# come last, which are the slowest.
# Packages are compiled on all cores, pip would take one; not so what no test imports: 2,500 files of models, of which three
# are, and the packages' own tests, a quarter of all source.
# A first import in a test must not compile them: a warning there is an error, and torchao's source has one.
# Needs Python 3.11 or later with venv; the browser set-up needs apt as root or through sudo.
set -eu
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
unread='site-packages/(transformers/models|torch/testing/_internal|.*/tests?)/'

[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
browser=""
if [ -f tests/browser_setup.sh ]; then
    sh tests/browser_setup.sh & # it mostly waits for the net
    browser=$!
fi
"$venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
"$venv/bin/python" -W ignore -m compileall -qq -j 0 -x "$unread" "$venv/lib" || true # templates are no Python
[ -z "$browser" ] || wait "$browser"
unset PYTHONDONTWRITEBYTECODE # where a container sets it, every process of the program compiles it anew
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
exec "$venv/bin/python" -m pytest -n auto --dist loadscope --no-loadscope-reorder -m "not long" "$@" # the last -m counts
