"""Reports: what is in them, and their forms."""
