"""Take credentials out of text before anyone sees it."""

from __future__ import annotations

import re

EXAMPLE = "<user>:<password>@"
"""How our own advice writes credentials in a URL: they are nobody's, and stay readable."""

# Matches user:password@ or token@ between :// and the host. Greedy up to the last @ before a slash or space, since
# people paste passwords with an unescaped @, a quote or a bracket.
_USERINFO = re.compile(rf"(?P<scheme>[a-z][a-z0-9+.\-]*://)(?!\[?{re.escape(EXAMPLE)})[^/\s]*@", re.IGNORECASE)
_QUERY = re.compile(
    r"(?P<key>[?&](?:token|access_token|api_key|apikey|key|password|passwd|secret|sig|signature|x-amz-[a-z-]+)=)[^&\s'\"#]+",
    re.IGNORECASE,
)
_ROUTER = re.compile(r"http://127\.0\.0\.1:\d+/[A-Za-z0-9_\-]{16,}/")


def redact(text: str) -> str:
    """``https://me:secret@host/`` → ``https://****@host/``; token-like query values and the router's own path go too."""
    if "://" not in text:
        return text
    text = _USERINFO.sub(r"\g<scheme>****@", text)
    text = _QUERY.sub(r"\g<key>****", text)
    return _ROUTER.sub("http://127.0.0.1/router/", text)


def bare_url(url: str) -> str:
    """``url`` without user and password, for places where the mark ``****`` would be wrong (locks, JSON)."""
    return _USERINFO.sub(r"\g<scheme>", url)
