"""Bundles of Playwright suites as people send them."""

import gzip
import hashlib
from typing import Any

from tests.servers.public_api import ApiUser


def bundle_bytes(content: bytes = b"tests") -> bytes:
    """A gzip, which is all that the service looks at."""
    return gzip.compress(content, mtime=0)


def sha256_of(body: bytes) -> str:
    """Its content address."""
    return hashlib.sha256(body).hexdigest()


async def a_bundle(user: ApiUser, content: bytes = b"tests") -> str:
    """Send one; gives its content address."""
    body = bundle_bytes(content)
    sha256 = sha256_of(body)
    answer = await user.put(f"/v1/code-bundles/{sha256}", data=body)
    assert answer.status == 201, answer.body
    return sha256


def suite_body(sha256: str, **fields: Any) -> dict[str, Any]:
    """A suite that runs at the location `default`."""
    return {
        "name": "Suite",
        "codeBundlePath": sha256,
        "privateLocations": ["default"],
        **fields,
    }
