"""Checks of speed: plans of models and kernels that are stored, and the checks themselves."""
