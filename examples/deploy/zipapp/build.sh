#!/usr/bin/env bash
# Makes speech.pyz, one file with the application, fastlayers and numpy, which `python3 speech.pyz` runs.
#
#   examples/deploy/zipapp/build.sh fastlayers-*.whl [speech.pyz]        PYTHON=python3: the version that is to run it
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wheel=$(realpath "$1") file=$(realpath "${2:-speech.pyz}") python=${PYTHON:-python3}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
"$python" -m pip install --quiet --no-compile --target "$root" "$wheel"
rm -rf "$root/bin"
cp "$here/app.py" "$here/__main__.py" "$root"
"$python" -m zipapp --compress --python '/usr/bin/env python3' --output "$file" "$root"
