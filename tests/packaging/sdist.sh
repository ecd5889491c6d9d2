#!/usr/bin/env bash
# Unpacks the source distribution into an empty folder, installs it there and runs its own tests.
#
#   tests/packaging/sdist.sh [folder of tests ...]      PYTHON=python: an interpreter with the extra `dev`; needs the package index
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/packaging/copy.sh"
python=$(command -v "${PYTHON:-python}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

copy_tree "$root" source
"$python" -m build --sdist --outdir dist source >build.log 2>&1 || { tail -50 build.log; exit 1; }
rm -rf source
tar -xzf dist/*.tar.gz
cd fastlayers-*/
"$python" -m venv .venv
FASTLAYERS_REQUIRE_ENGINE=1 .venv/bin/python -m pip install --quiet -e ".[test]"
if (($# == 0)); then set -- tests/test_readme.py tests/test_docs.py tests/test_lint.py tests/test_table.py tests/test_import.py tests/examples/test_scripts.py tests/kernels tests/layers; fi
.venv/bin/python -m pytest -q -n auto "$@"
