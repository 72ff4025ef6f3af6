"""The door to package indexes: pages, find-links, metadata and files, with pip's credentials, proxies and certificates.

Front door: :class:`rocmpip.index.client.Client`. From the bottom up:

    transport  httpcore under our time limits and in our words (imported at the first request)
    response   an answer: decompressed, up to a size
    pool       connections kept open; proxies and TLS
    fetch      redirects, credentials, retries, and the error that a person reads
    listing    JSON (PEP 691) and HTML (PEP 503) pages → files
    client     pages, find-links, metadata, downloads; memory and disk cache
"""
