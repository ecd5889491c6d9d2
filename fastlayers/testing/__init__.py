"""Checks of speed for tests: see the functions."""
