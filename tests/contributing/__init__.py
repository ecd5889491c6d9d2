"""CONTRIBUTING.md's walks, done in a copy of the tree."""
