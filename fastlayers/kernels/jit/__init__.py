"""Numba kernels, compiled when they are first called; nothing is compiled at import. Needs the extra "jit"."""
