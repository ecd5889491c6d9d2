"""Engines that spread work over processes: what needs none of them by default, and a step of .ci/run for each of them."""
