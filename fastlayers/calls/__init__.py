"""Kernel calls, one text per family: run at once on arrays by functions and layers, or recorded into a program by operators."""
