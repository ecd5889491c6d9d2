"""Compiled kernels: Cython loop nests over C microkernels, one small extension an instruction-set level."""
