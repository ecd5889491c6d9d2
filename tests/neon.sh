#!/usr/bin/env bash
# Cross-compiles the neon level and checks its functions under an emulator. Skips where the tools are missing:
#
#   apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
#
# `tests/neon.sh _x86_v3.c` checks a native level with the same loops.
set -euo pipefail
cd "$(dirname "$0")/.."
flags=(-O3 -ffp-contract=fast -fno-math-errno -Wno-psabi -DFL_NO_MODULE -Ifastlayers/kernels/aot/csrc)
"${PYTHON:-python}" -m codegen >/dev/null # the header of codes; needs nothing but Python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case ${1:-_neon.c} in
  _x86_v1.c | _x86_v3.c | _x86_v4.c)
    march=x86-64-${1:5:2}
    [[ $march == *-v1 ]] && march=x86-64
    "${CC:-gcc}" "${flags[@]}" -march="$march" -DSOURCE="\"$1\"" tests/neon.c -o "$work/check" -lm
    "$work/check"
    ;;
  *)
    for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
      command -v $tool >/dev/null || { echo "neon: skipped, there is no $tool here"; exit 0; }
    done
    aarch64-linux-gnu-gcc -static "${flags[@]}" -DSOURCE='"_neon.c"' tests/neon.c -o "$work/check" -lm
    qemu-aarch64 "$work/check"
    ;;
esac
