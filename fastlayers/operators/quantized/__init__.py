"""Operators on 8-bit and 4-bit values."""
