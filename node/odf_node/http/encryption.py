"""TLS of the ports: contexts whose certificate can be replaced while connections run (DAEMON-7)."""

import ssl
import stat
from collections.abc import Iterable
from pathlib import Path

from odf_node.errors import UsageError


def make_tls_context(certificate: Path, key: Path, speaks: str = "http/1.1") -> ssl.SSLContext:
    """Make a server's context; ``speaks`` is what runs inside of the encryption, as ALPN names it.

    Raises:
        UsageError: The files cannot be used; the message names them and says why.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Source: RFC 9325 section 3.1.1: 1.2 is the oldest that is still to be offered.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([speaks])
    load_certificate([context], certificate, key)
    return context


def load_certificate(contexts: Iterable[ssl.SSLContext], certificate: Path, key: Path) -> None:
    """Use another certificate from the next connection on, at every port; connections that run keep theirs.

    Raises:
        UsageError: The files cannot be used, or others can read the key; the contexts are as they were.
    """
    for what, path in (("tls.certificate", certificate), ("tls.key", key)):
        try:
            mode = path.stat().st_mode
            path.open("rb").close()
        except OSError as error:
            raise UsageError(f"{what}: {path}: {error.strerror or error}") from error
        if what == "tls.key" and mode & (stat.S_IRWXO | stat.S_IWGRP):
            raise UsageError(f"{what}: {path}: others can read or change it; say 'chmod 600 {path}'")
    try:
        # Tried on a context of its own first: a pair that does not fit would leave ours half changed.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_reject_password)
        for context in contexts:
            context.load_cert_chain(certificate, key, password=_reject_password)
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise UsageError(f"tls: {certificate} and {key} cannot be used together: {reason}") from error


def _reject_password() -> str:
    raise OSError("the key is encrypted; keep it in a file without a password that only this user can read")
