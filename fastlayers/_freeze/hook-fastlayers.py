"""Modules that PyInstaller cannot see: those, compiled ones included, that are imported by name when a network first needs
them."""

from importlib.util import find_spec

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

_NUMBA = ("fastlayers.kernels.jit", "fastlayers.kernels.cuda")


def _wanted(name: str) -> bool:
    return find_spec("numba") is not None or not name.startswith(_NUMBA)


hiddenimports = collect_submodules("fastlayers", filter=_wanted)
datas = collect_data_files("fastlayers", subdir="data")
