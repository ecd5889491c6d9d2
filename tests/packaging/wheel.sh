#!/usr/bin/env bash
# Builds the sdist, the wheel from the sdist, looks at what both hold, and runs the demo from the wheel beside nothing but numpy.
#
#   tests/packaging/wheel.sh        PYTHON=python: an interpreter with the extra `dev`; needs the package index
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/packaging/copy.sh"
python=$(command -v "${PYTHON:-python}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" # so that no import finds the source tree

# A copy, because a build leaves its metadata beside the sources.
copy_tree "$root" source
FASTLAYERS_REQUIRE_ENGINE=1 "$python" -m build --outdir dist source >build.log 2>&1 || { tail -50 build.log; exit 1; }
# Metadata and the source distribution need none of Cython's work, which is a minute of a processor.
if compgen -G 'source/fastlayers/kernels/aot/*.c' >/dev/null; then echo "the sdist was made with Cython" && exit 1; fi
"$python" "$root/tests/packaging/contents.py" dist/*.tar.gz dist/*.whl

"$python" -m venv plain
plain/bin/python -m pip install --quiet dist/*.whl
plain/bin/python "$root/tests/packaging/installed.py"
plain/bin/fastlayers demo
