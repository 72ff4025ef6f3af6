"""One build: preflight, environment, overlay, compile, examination of the result. ``engine.build`` conducts it."""
