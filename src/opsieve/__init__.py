"""opsieve: ship only the operators your models need."""

__version__ = "0.1.0"
