"""Example scripts, run as a user runs them."""
