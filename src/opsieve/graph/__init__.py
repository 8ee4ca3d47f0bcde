"""Operators of a library, what they register, and what they need of each other."""
