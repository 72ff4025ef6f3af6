"""rocmpip: the pip that knows your AMD GPU."""

__version__ = "0.1.0"
