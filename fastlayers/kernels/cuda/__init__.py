"""CUDA kernels, compiled by Numba. Modules here are imported by _dispatch and by ``fastlayers.cuda`` only."""
