#!/usr/bin/env bash
# Runs a wheel for arm64 under an emulator, with Debian's Python for arm64 and numpy's own wheel.
#
#   tests/packaging/emulated.sh WHEEL       needs qemu-user, Debian's packages and the package index
set -euo pipefail
wheel=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Lists of packages of the other architecture, without a change to this system's.
mkdir -p apt/{lists/partial,cache/archives/partial} root site
apt=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$work/apt" -o Dir::State::Status="$work/apt/status"
  -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root)
touch apt/status
apt-get "${apt[@]}" update
apt-get "${apt[@]}" --download-only --no-install-recommends -y install python3-minimal libpython3-stdlib libstdc++6
for package in apt/cache/archives/*.deb; do dpkg-deb -x "$package" root; done
python=$(compgen -G "root/usr/bin/python3.*" | head -1)
version=$(basename "$python" | tr -d 'a-z')
"${PYTHON:-python3}" -m pip download --quiet --only-binary :all: --no-deps --platform manylinux2014_aarch64 --platform manylinux_2_27_aarch64 \
  --python-version "$version" --implementation cp -d . numpy
for each in numpy-*.whl "$wheel"; do "${PYTHON:-python3}" -m zipfile -e "$each" site; done
emulated() { PYTHONPATH=$work/site qemu-aarch64 -L "$work/root" "$python" -B "$@"; }
emulated -m fastlayers doctor
emulated -m fastlayers demo
emulated - <<'PY'
import numpy as np
import fastlayers as fl
assert fl.kernels.current() == "aot/neon", fl.kernels.current()
x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(4, 3)
np.testing.assert_array_equal(fl.functional.linear(x, w, None), x @ w.T)
PY
