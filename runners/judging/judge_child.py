"""The process that judges large bodies: reads what was observed, writes the outcome, in turns.

Reading 25 MB of JSON takes an interpreter for half a second, and threads share one.
"""

import pickle
import sys

from runners.judging.judge import judge
from sandbox.system_calls import give_back_memory, hide_memory, map_large_blocks


def main() -> None:
    """Judge until standard input ends."""
    hide_memory()
    map_large_blocks()
    while True:
        try:
            spec, seen = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own process writes it
        except EOFError:
            return
        pickle.dump(judge(spec, seen), sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()
        del seen
        give_back_memory()


if __name__ == "__main__":
    main()
