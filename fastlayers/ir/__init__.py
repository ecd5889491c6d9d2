"""Graphs of networks: values, nodes and graphs that never change, and checks of sizes that may be known by name alone."""
