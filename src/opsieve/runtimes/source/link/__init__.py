"""Linking: which linker, its command, what it found missing, and its account of what it kept."""
