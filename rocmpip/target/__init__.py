"""The environment that installs go into, and the pip that runs there. Nothing is imported here: the fast path passes through."""
