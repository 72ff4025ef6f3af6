"""Frozen values shared by every room. Nothing here reads files, runs programs or talks to a server."""
