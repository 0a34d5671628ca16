"""Asks the program in this container whether it lives: alive.py PORT_VARIABLE DEFAULT_PORT PATH.

Exit codes: 0 it does, 1 it does not. Proxies of the environment are left aside.
"""  # noqa: INP001 - a script of the images

import http.client
import os
import sys
from typing import Final

_LIMIT_S: Final = 5


def main(variable: str, default_port: str, path: str) -> int:
    """Ask once and say in one line what came out, for the container engine's record."""
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
