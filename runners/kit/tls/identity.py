"""Gives a TLS context the certificate that it shows, without a file on disk."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager


def load_identity(context: ssl.SSLContext, pem: bytes, passphrase: str = "") -> None:
    """Have a context show a certificate; certificate and key come from memory, never from disk.

    Raises:
        ssl.SSLError, ValueError: they cannot be read, or do not belong together.
    """
    with _memory_file(pem) as path:
        context.load_cert_chain(path, password=passphrase)


@contextmanager
def _memory_file(content: bytes) -> Iterator[str]:
    descriptor = os.memfd_create("picket-identity")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
