#!/usr/bin/env bash
# Builds the engine with AddressSanitizer and UndefinedBehaviorSanitizer in a copy of the tree, and runs there the tests of kernels, the
# engine, programs, streams and classical models. Scratch and packed weights have red zones; within a program each value has pages of its own.
#
#   tests/sanitize.sh [pytest arguments]        PYTHON=python: an interpreter with numpy and the extras `test` and `dev`
#
# Python's and numpy's small objects come from malloc here, so every array has its own red zones. Python itself leaks on purpose, so
# leaks are not looked for; freed memory is kept back for a short while only, because some tests watch how much is in use. GCC's
# runtime comes before everything else, as it must; that of C++ because numpy throws.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=$(command -v "${PYTHON:-python}")
copy=$(mktemp -d)
# AddressSanitizer's reports go to files, as pytest keeps what a test prints and dies with it. The other's go to what is printed
# beside Python, which pytest is therefore asked to leave alone.
finish() {
  for report in "$copy"/report.*; do
    [[ -e $report ]] && head -40 "$report"
  done
  rm -rf "$copy"
}
trap finish EXIT

tar -C "$root" --exclude=./.git --exclude=./build --exclude='./.venv*' --exclude='*.so' --exclude=__pycache__ -cf - . | tar -C "$copy" -xf -
cd "$copy"
export PYTHONPATH=$copy FASTLAYERS_REQUIRE_ENGINE=1 FASTLAYERS_SANITIZE=1
# The two levels that are tested, below: each takes minutes to compile.
if [[ $(uname -m) == x86_64 ]]; then
  widest=x86_v1
  for pair in avx2:x86_v3 avx512vl:x86_v4 amx_int8:x86_amx; do
    if grep -qw "${pair%:*}" /proc/cpuinfo; then widest=${pair#*:}; fi
  done
  export FASTLAYERS_LEVELS="$widest x86_v1"
fi
"$python" setup.py --quiet build_ext --inplace

library() { "${CC:-gcc}" -print-file-name="$1"; }
export LD_PRELOAD="$(library libasan.so) $(library libubsan.so) $(library libstdc++.so.6)"
export PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1
options=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=16
export ASAN_OPTIONS=$options UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

# A check of the check: a read one element past an array must end the process, on every level and in the driver's own memory.
levels=$("$python" -c 'from fastlayers.kernels import dispatch; print(*dispatch.levels())')
for level in $levels; do
  if report=$("$python" - "$level" 2>&1 <<'PY'
import sys
import numpy as np
from fastlayers.kernels.aot import _engine
_engine.select(sys.argv[1])
_engine.probe_read(np.lib.stride_tricks.as_strided(np.zeros(1000, np.float32), (1001,), (4,)))
PY
  ) || [[ $report != *heap-buffer-overflow* ]]; then
    echo "sanitize: reading past the end of an array went unnoticed on $level: $report" >&2
    exit 1
  fi
done
echo "sanitize: levels $levels"

# All levels are one source: the widest and the narrowest reach every path, and numpy's own code is not what is looked at. Each has a
# process of its own, side by side; what is of no level runs with the widest.
read -ra every <<<"$levels"
first=${every[0]} last=${every[-1]}
chosen="not reference and not jit"
for level in "${every[@]:1}"; do
  chosen+=" and not $level"
done

tests=()
for folder in tests/kernels tests/engine tests/program tests/stream tests/operators/ml; do
  [[ -d $folder ]] && tests+=("$folder")
done
export ASAN_OPTIONS=$options:log_path=$copy/report UBSAN_OPTIONS=$UBSAN_OPTIONS:log_path=$copy/report
# pytest's own handler of SIGSEGV would hide the sanitizer's report. The test that takes the address space away from the threads takes
# it from the sanitizer too; long random streams take twenty times as long here, and the default ones reach the same code.
run() {
  "$python" -m pytest -q -x --capture=sys -p no:cacheprovider -p no:faulthandler -m "" -k "$1" "${tests[@]}" \
    --deselect tests/engine/test_pool.py::test_a_thread_that_is_refused_leaves_the_work_to_the_caller \
    --deselect tests/stream/test_bits.py::test_more_random_networks "${@:2}"
}
narrow=
if [[ $last != "$first" ]]; then
  run "$last" "$@" >"$copy/narrowest" 2>&1 &
  narrow=$!
fi
status=0
run "$chosen" "$@" || status=$?
if [[ -n $narrow ]]; then
  wait "$narrow" || status=$?
  echo "sanitize: $last"
  tail -n 40 "$copy/narrowest"
fi
exit "$status"
