"""TLS contexts from pip's options and the variables pip honours."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.index.address import Address, trusts
from rocmpip.index.wire_errors import TlsFailed

if TYPE_CHECKING:
    import ssl

_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


class Tls:
    """Order of the certificate sources: ``cert`` (``--cert``, PIP_CERT, configuration), REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE,
    SSL_CERT_FILE, SSL_CERT_DIR, the system's store, certifi. ``trusted_hosts`` are not verified at all."""

    def __init__(self, cert: str, client_cert: str, trusted_hosts: tuple[str, ...], env: Mapping[str, str]) -> None:
        self._cert = cert
        self._client_cert = client_cert
        self._trusted = trusted_hosts
        self._env = env
        self._lock = threading.Lock()
        self._contexts: dict[bool, ssl.SSLContext] = {}

    def verifies(self, address: Address) -> bool:
        return not trusts(self._trusted, address.host, address.port)

    def context(self, address: Address) -> ssl.SSLContext:
        """The context for one host; made at its first use (loading certificates takes tens of milliseconds)."""
        verify = self.verifies(address)
        with self._lock:
            if verify not in self._contexts:
                self._contexts[verify] = self._make(verify)
            return self._contexts[verify]

    def _make(self, verify: bool) -> ssl.SSLContext:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.set_alpn_protocols(["http/1.1"])
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            self._load_authorities(context)
        if self._client_cert:
            try:
                context.load_cert_chain(self._client_cert, password=_no_password)
            except (OSError, ssl.SSLError) as problem:
                raise TlsFailed(
                    f"the client certificate {self._client_cert} cannot be used ({problem})",
                    final=True,
                    hint="--client-cert wants one PEM file with the certificate and its key, without a password",
                ) from None
        return context

    def _load_authorities(self, context: ssl.SSLContext) -> None:
        import ssl

        for name, place in (("--cert", self._cert), *((name, self._env.get(name, "")) for name in _VARIABLES)):
            if not place:
                continue
            try:
                if Path(place).is_dir():
                    context.load_verify_locations(capath=place)
                else:
                    context.load_verify_locations(cafile=place)
            except (OSError, ssl.SSLError) as problem:
                raise TlsFailed(
                    f"the certificate bundle {place} cannot be read ({problem})",
                    final=True,
                    hint=f"{name} must name a PEM file or a folder of certificates",
                ) from None
            return
        context.load_default_certs()
        if context.cert_store_stats()["x509_ca"] == 0:
            # Containers without ca-certificates: the bundle that comes with the HTTP library, as pip brings its own.
            try:
                import certifi
            except ImportError:
                return
            context.load_verify_locations(cafile=certifi.where())


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal.
    return ""
