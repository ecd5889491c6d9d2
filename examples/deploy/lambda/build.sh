#!/usr/bin/env bash
# Makes function.zip of handler.py, a model, fastlayers and numpy.
#
#   examples/deploy/lambda/build.sh fastlayers-*.whl [function.zip]      PYTHON=python3: the function's version
#   MODEL=trees.safetensors HANDLER=rows.py examples/deploy/lambda/build.sh ...     another model, saved by us, and what calls it
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wheel=$(realpath "$1") zip=$(realpath "${2:-function.zip}") python=${PYTHON:-python3}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

"$python" -m pip install --quiet --no-compile --target "$root" "$wheel"
cp "$here/${HANDLER:-handler.py}" "$root/handler.py"
if [[ -n ${MODEL:-} ]]; then cp "$MODEL" "$root/model.safetensors"; else # packed, so that the first answer comes sooner
  (cd "$root" && PYTHONDONTWRITEBYTECODE=1 "$python" - model.safetensors) <<'PY' # from there, so that it is the wheel's fastlayers
import sys, fastlayers as fl
model = fl.load(fl.example("silero_vad"))
model.prepare({"input": (1, 576), "state": (2, 1, 128), "sr": ()})
model.save(sys.argv[1], packed=True)
PY
fi
# What no function runs: numpy's tests and headers, Numba's kernels, scripts. What is left is compiled, since the disk cannot be written there.
rm -rf "$root"/bin "$root"/numpy/{tests,*/tests,f2py,_core/include,_core/lib} "$root"/fastlayers/kernels/{jit,cuda} "$root"/fastlayers/data
find "$root" -name '*.pyi' -delete
"$python" -m compileall -q --invalidation-mode unchecked-hash -j 0 "$root"
(cd "$root" && "$python" -c 'import shutil, sys; shutil.make_archive(sys.argv[1].removesuffix(".zip"), "zip", ".")' "$zip")
echo "$zip: $(($(stat -c %s "$zip") / 1000000)) MB, unpacked $(du -sm --apparent-size "$root" | cut -f1) MB"
