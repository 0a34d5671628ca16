"""Work on what comes next in threads: what searches, unpacks and packs lets others compute."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

THREADS: Final = 2
"""Two blocks are searched at once: more of them would take memory, and processors of checks."""

MOST_HELD: Final = 2 * THREADS
"""Items at once. With fewer no work is waiting while the one who hands it out is busy."""


def each_with(
    work: Callable[[Item], Made], items: Iterable[Item]
) -> Generator[tuple[Item, Made], None, None]:
    """Each item with what the work makes of it, in order."""
    under_way: deque[tuple[Item, Future[Made]]] = deque()
    with ThreadPoolExecutor(THREADS) as threads:
        for item in items:
            under_way.append((item, threads.submit(work, item)))
            if len(under_way) >= MOST_HELD:
                first, made = under_way.popleft()
                yield first, made.result()
        for item, made in under_way:
            yield item, made.result()
