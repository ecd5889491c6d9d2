"""Builds the compiled engine: one extension per .pyx of the driver, and one small C extension per instruction-set level.

Everything else about the package is in pyproject.toml. A missing or failing compiler does not fail the install: fastlayers then
runs its numpy reference and says so at first use (and in ``fastlayers doctor``).

Environment (for work on fastlayers; an ordinary install needs none of it):
    FASTLAYERS_REQUIRE_ENGINE=1   a compiler that fails is an error
    FASTLAYERS_SANITIZE=1         build with AddressSanitizer and UndefinedBehaviorSanitizer (see tests/sanitize.sh)
    FASTLAYERS_LEVELS="x86_v3"    build these levels alone
    FASTLAYERS_DEBUG_CYTHON=1     bounds checks in the Cython driver
    FASTLAYERS_ABI3=1             for the stable ABI: one wheel for every Python from 3.10 on (docs/decisions/wheels.md)
    FASTLAYERS_COMPILER=mingw32   the compiler type, where the platform's default is neither GCC nor Clang
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

AOT = Path("fastlayers/kernels/aot")
ABI3 = bool(os.environ.get("FASTLAYERS_ABI3"))
# Macros of the full interface that the driver uses, as the stable one has them: functions, which also check what they get.
LIMITED = {
    "Py_LIMITED_API": "0x030a0000",
    "PyBytes_AS_STRING": "PyBytes_AsString",
    "PyBytes_GET_SIZE": "PyBytes_Size",
    "PyTuple_GET_ITEM": "PyTuple_GetItem",
    "PyTuple_GET_SIZE": "PyTuple_Size",
}
_CYTHON = threading.Lock()  # its compiler is for one thread

# GCC spills the register tiles below -O3; contraction to fused multiply-adds is wanted, -ffast-math (which drops NaN) never.
C_FLAGS = ["-O3", "-ffp-contract=fast", "-fno-math-errno", "-Wno-psabi", "-g0", "-fno-asynchronous-unwind-tables"]
# SSE2's kernels are written in vectors: what a compiler makes vectors of besides is a tenth of their code, and what copies of
# loops -O3 makes another twelfth, neither of them faster.
LEVELS = {
    "x86_64": {
        "x86_v1": ["-O2", "-fno-tree-vectorize"],
        "x86_v3": ["-march=x86-64-v3"],
        "x86_v4": ["-march=x86-64-v4"],
        "x86_amx": ["-march=x86-64-v4"],  # its few functions with tiles name them as targets
    },
    "aarch64": {"neon": []},
}
# A compiler that does not know AMX (GCC before 11) leaves its level out.
OPTIONAL_LEVELS = {"x86_amx"}
LEVELS["amd64"], LEVELS["arm64"] = LEVELS["x86_64"], LEVELS["aarch64"]

DIRECTIVES = {
    "language_level": "3",
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    # Plain C functions instead of Cython's type, which takes 14 KB in every module; inspect reads their signatures.
    "binding": False,
    "embedsignature": True,
    "embedsignature.format": "clinic",
    "auto_pickle": False,  # of what a driver holds, nothing may be pickled
}
# Driver modules that compute, of many types, and weights for Winograd: as fast without -O3's other copies of loops, at half to
# two thirds of the size (of `ordering`, TopK of a hundred of a thousand takes 1.2 of the time; argmax and less of TopK, 1.0).
VECTORIZED = {"binary", "functions", "indexing", "ordering", "pool_places", "reduce", "suppression", "winograd"}
# What binds, checks and packs, once for many runs, or answers Python, and drivers whose loops are the levels': as short as it
# can be.
SHORT = {
    "_band", "_elementwise", "_fit", "_inside", "_lines", "_nested", "_plan", "_rows", "_step", "_stop", "activation",
    "adaptive", "attention", "classical", "conv", "conv_transpose", "depthwise", "fft", "gemm", "layout",
    "linear_attention", "matmul", "movement", "nbits", "norm", "pooling", "qconv", "qmatmul", "quantize", "recurrent",
    "rotary", "run", "scores", "softmax", "time_pooling", "tree",
}  # fmt: skip
# C that a driver module needs besides what Cython makes of it.
ALSO = {"_engine": ["pool.c", "lockstep.c", "memory.c"]}


def _optimized(module: str) -> list[str]:
    """How a driver module is optimized, after -O3."""
    if module in SHORT:
        return ["-Os"]
    return ["-O2", "-ftree-vectorize"] if module in VECTORIZED else ["-O2"]


def machine() -> str:
    """The processor that is built for: cross builds on macOS and Windows name it in their own variables."""
    for flags in (os.environ.get("ARCHFLAGS", ""), os.environ.get("_PYTHON_HOST_PLATFORM", "")):
        for name in ("arm64", "aarch64", "x86_64"):
            if name in flags:
                return name
    return platform.machine().lower()


def extensions() -> list[Extension]:
    """Every extension, or none on a processor without a level: the driver has nothing to drive there."""
    chosen = os.environ.get("FASTLAYERS_LEVELS", "").split()
    levels = {name: march for name, march in LEVELS.get(machine(), {}).items() if not chosen or name in chosen}
    if not levels:
        return []
    import Cython  # noqa: F401  what is not there is said now, and used when something is built
    import numpy

    root = Path(__file__).resolve().parent
    sys.path.insert(0, str(root))  # a build in isolation does not look for modules next to this file
    import codegen

    codegen.write(root)
    flags, link = list(C_FLAGS), [] if sys.platform == "darwin" else ["-s"]
    # Threads need a flag of their own with some C libraries.
    own = [] if sys.platform == "win32" else ["-pthread"]
    bare: list[str] = []
    if sys.platform == "linux":
        # Many small modules: pages between their parts are most of some of them.
        # Without BIND_NOW, RELRO leaves the table of calls writable and protects next to nothing, for half a page in each.
        link += ["-Wl,-z,noseparate-code", "-Wl,-z,norelro", "-Wl,--build-id=none", "-Wl,--hash-style=gnu"]
        # A shared library in C that has no constructor, sets nothing to run at its end and is not unloaded needs nothing of what
        # compilers link first and last: a kilobyte each.
        bare = ["-nostartfiles"]
    if os.environ.get("FASTLAYERS_SANITIZE"):
        sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g"]
        flags, link, bare = [f for f in flags if f != "-g0"] + sanitize, sanitize, []
        own.append("-O1")  # the driver's modules: they compile in less than half of the time, which is most of such a build
    directives = dict(DIRECTIVES)
    if os.environ.get("FASTLAYERS_DEBUG_CYTHON"):
        directives.update(boundscheck=True, wraparound=False, initializedcheck=True)
    # The oldest numpy that is supported knows the interface of 1.22, which counted memory needs.
    macros = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_1_22_API_VERSION")]
    limited = list(LIMITED.items()) if ABI3 else []
    headers = sorted(str(path) for folder in ("csrc", "made") for path in (AOT / folder).glob("*.[hd]*"))
    driver = [
        Extension(
            f"fastlayers.kernels.aot.{pyx.stem}",
            [str(pyx), *(str(AOT / "csrc" / name) for name in ALSO.get(pyx.stem, ()))],
            include_dirs=[str(AOT), numpy.get_include()],
            extra_compile_args=[*flags, *_optimized(pyx.stem), *own],
            extra_link_args=[*link, *own, *([] if pyx.stem in ALSO else bare)],  # the engine has a handler of forks
            define_macros=[*macros, *limited],
            py_limited_api=ABI3,
            depends=headers,
        )
        for pyx in sorted(AOT.glob("*.pyx"))
    ]
    kernels = [
        Extension(
            f"fastlayers.kernels.aot._{name}",
            [str(AOT / "csrc" / f"_{name}.c")],
            extra_compile_args=[*flags, *march],
            extra_link_args=[*link, *bare],
            depends=headers,
            define_macros=limited[:1],
            py_limited_api=ABI3,
            optional=name in OPTIONAL_LEVELS,
        )
        for name, march in levels.items()
    ]
    for extension in driver:
        extension.cython_directives = directives  # for OptionalBuild
    return [*kernels, *driver]  # what takes longest first: the others fill what is left of the time


class OptionalBuild(build_ext):
    """Builds in parallel, and turns a failure into a message: all of the engine is there or none of it."""

    def finalize_options(self) -> None:
        self.compiler = self.compiler or os.environ.get("FASTLAYERS_COMPILER")
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        try:
            super().run()
            self.missing = False
        except Exception as error:  # a compiler can fail in many ways, and none may fail the install
            if os.environ.get("FASTLAYERS_REQUIRE_ENGINE"):
                raise
            print(f"fastlayers: the compiled engine could not be built ({error}); installing without it", file=sys.stderr)
            self.missing = True
            for path in Path(self.build_lib).glob("fastlayers/kernels/aot/*.so"):
                path.unlink()

    def build_extension(self, ext: Extension) -> None:
        # Cython writes the C of one module while others are compiled, and not when metadata or a source distribution are made.
        if hasattr(ext, "cython_directives"):
            from Cython.Build import cythonize

            with _CYTHON:
                ext.sources = cythonize([ext], compiler_directives=ext.cython_directives, quiet=True)[0].sources
        super().build_extension(ext)

    def get_outputs(self) -> list[str]:
        return [] if getattr(self, "missing", False) else super().get_outputs()


def ext_modules() -> list[Extension]:
    try:
        return extensions()
    except ImportError as error:
        if os.environ.get("FASTLAYERS_REQUIRE_ENGINE"):
            raise
        print(
            f"fastlayers: the compiled engine needs Cython and numpy to build ({error}); installing without it", file=sys.stderr
        )
        return []


setup(
    ext_modules=ext_modules(),
    cmdclass={"build_ext": OptionalBuild},
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if ABI3 else {},
)
