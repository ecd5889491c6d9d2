#!/usr/bin/env bash
# Cross-compiles the neon level and checks its functions under an emulator, for which it takes:
#
#   apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
#
# `tests/neon.sh _x86_v3.c` checks a native level with the same loops; so does `tests/neon.sh` where those tools are missing, lest
# neon.c fall behind the kernels.
set -euo pipefail
cd "$(dirname "$0")/.."
flags=(-O3 -ffp-contract=fast -fno-math-errno -Wno-psabi -DFL_NO_MODULE -Ifastlayers/kernels/aot/csrc)
"${PYTHON:-python}" -m codegen >/dev/null # the header of codes; needs nothing but Python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
level=${1:-_neon.c}
if [[ $# == 0 ]]; then
  for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v $tool >/dev/null || { echo "neon: there is no $tool here; _x86_v1.c in its place" && level=_x86_v1.c && break; }
  done
fi
case $level in
  _x86_v1.c | _x86_v3.c | _x86_v4.c)
    march=x86-64-${level:5:2}
    [[ $march == *-v1 ]] && march=x86-64
    "${CC:-gcc}" "${flags[@]}" -march="$march" -DSOURCE="\"$level\"" tests/neon.c -o "$work/check" -lm
    "$work/check"
    ;;
  *)
    aarch64-linux-gnu-gcc -static "${flags[@]}" -DSOURCE='"_neon.c"' tests/neon.c -o "$work/check" -lm
    qemu-aarch64 "$work/check"
    ;;
esac
