"""CUDA kernels, compiled by Numba; what programs and ``fastlayers.cuda`` ask for comes from here, when it is asked for."""

from ..._lazy import exports

__getattr__, __dir__ = exports(
    __name__,
    {
        "_cuda": "on_stream synchronize",
        "_device": "Array empty placed sent upload",
        "_driver": "event start stream_pointer",
        "_exchange": "DTYPES is_foreign wrap",
    },
)
