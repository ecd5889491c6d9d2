"""Plain numpy kernels: the oracle of every other variant and the last fallback. Written to be read, not to be fast."""
