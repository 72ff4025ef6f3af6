"""The door that answers pip: one index on 127.0.0.1 for the life of a run.

Front door: :class:`rocmpip.router.server.Router`. ``pages`` merges and writes pages, ``files`` answers for files, ``loopback`` speaks
HTTP, ``peer`` keeps other users out, ``alias`` makes the wheels that exist only here.
"""
