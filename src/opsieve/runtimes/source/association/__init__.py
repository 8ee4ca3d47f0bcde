"""Registrations that ride with their operator: sources rewritten so that the linker keeps each exactly when needed."""
