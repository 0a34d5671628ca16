"""`python -m tests.faults.uploader`: sends FILE to URL, from where the service says it stopped."""

import hashlib
import json
import os
import sys
import time
import urllib.request
from pathlib import Path
from urllib.error import HTTPError, URLError

_TRIES = 200


def main() -> int:
    """Exit code 0: the service has the whole file; 1: the connection broke."""
    content = Path(os.environ["FILE"]).read_bytes()
    try:
        began_at = _send(content)
    except (URLError, OSError) as problem:
        _log(event="broken", because=str(problem))
        return 1
    _log(event="uploaded", began_at=began_at)
    return 0


def _send(content: bytes) -> int:
    """Send what is missing; where that began.

    The service says so when it is asked with the last byte. While it still reads what is left of a
    broken connection, that place moves on.
    """
    begin_at = len(content) - 1
    for _ in range(_TRIES):
        try:
            _put(content, begin_at)
        except HTTPError as refusal:
            if refusal.code != 416:
                raise
            begin_at = json.loads(refusal.read())["attributes"]["offset"]
            time.sleep(0.1)
        else:
            return begin_at
    raise OSError("the place to go on from does not come to rest")


def _log(**line: object) -> None:
    print(json.dumps(line), flush=True)  # noqa: T201 - its log


def _put(content: bytes, first: int) -> None:
    total = len(content)
    request = urllib.request.Request(
        os.environ["URL"],
        data=content[first:],
        method="PUT",
        headers={
            "authorization": f"Bearer {os.environ['KEY']}",
            "content-range": f"bytes {first}-{total - 1}/{total}",
            "x-content-sha256": hashlib.sha256(content).hexdigest(),
        },
    )
    with urllib.request.urlopen(request, timeout=90) as answer:
        answer.read()


if __name__ == "__main__":
    sys.exit(main())
