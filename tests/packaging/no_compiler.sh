#!/usr/bin/env bash
# Installs where the compiler fails: the install must succeed, `doctor` must say so, the first use warn, and results be right.
#
#   tests/packaging/no_compiler.sh        PYTHON=python: any supported interpreter; needs the package index
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/packaging/copy.sh"
python=$(command -v "${PYTHON:-python}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

copy_tree "$root" source
"$python" -m venv bare
env -u FASTLAYERS_REQUIRE_ENGINE CC=/bin/false CXX=/bin/false LDSHARED=/bin/false bare/bin/python -m pip install --quiet ./source
rm -rf source

if compgen -G 'bare/lib/python*/site-packages/fastlayers/kernels/aot/*.so' >/dev/null; then
  echo "no_compiler: something was compiled all the same" >&2
  exit 1
fi
bare/bin/python -W error::DeprecationWarning "$root/tests/packaging/reference_only.py"
said=$(bare/bin/fastlayers doctor 2>&1 || true)
grep -qi 'engine.*missing\|missing.*engine\|not built' <<<"$said" || { echo "no_compiler: doctor does not say that the engine is missing: $said" >&2; exit 1; }
echo "no_compiler: doctor says: $(grep -im1 'missing\|not built' <<<"$said")"
