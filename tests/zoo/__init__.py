"""Models exported there and then by other libraries, run here and there; each module needs an environment of its own."""
