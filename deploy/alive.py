"""Health check of the program in this container: alive.py PORT_VARIABLE DEFAULT_PORT PATH.

Exit codes: 0 healthy, 1 not. It ignores the environment's proxies.
"""  # noqa: INP001 - a script of the images

import http.client
import os
import sys
from typing import Final

_LIMIT_S: Final = 5


def main(variable: str, default_port: str, path: str) -> int:
    """Send one request and print the outcome in one line, for the container engine's log."""
    port = int(os.environ.get(variable) or default_port)
    try:
        status = ask(port, path)
    except (OSError, http.client.HTTPException) as problem:
        sys.stdout.write(f"port {port} did not answer {path}: {problem}\n")
        return 1
    sys.stdout.write(f"port {port} answered {path} with {status}\n")
    return int(status != http.HTTPStatus.OK)


def ask(port: int, path: str) -> int:
    """The status of the answer; raises OSError or HTTPException when none came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_LIMIT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
