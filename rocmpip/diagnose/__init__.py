"""Find the first real cause in a build log, pip output or traceback. Pure: bytes in, findings out."""
