"""Places in a text, and what stands around them."""

from collections.abc import Iterable, Iterator, Sequence

from runners.kit.secrets.compiled import Placed, apart

Places = Sequence[tuple[int, int]]
"""Where something begins and ends in a text."""


def each_apart(expressions: Iterable[Placed], text: bytes) -> Iterator[tuple[int, int]]:
    """Where each of them is found."""
    return (place for expression in expressions for place in apart(expression, text))


def begins_in(place: tuple[int, int], text: bytes, expressions: Iterable[Placed]) -> bool:
    """Whether one of them is found anywhere from the place's first byte to its last."""
    start, end = place
    return any(
        expression.match(text, at) is not None
        for expression in expressions
        for at in range(start, end)
    )


def around(seen: Iterable[tuple[int, int]], reach: int, size: int) -> Iterator[tuple[int, int]]:
    """What stands around the places, as far as that; no two touch."""
    start = end = 0
    for seen_start, seen_end in seen:
        if seen_start - reach > end:
            if end:
                yield start, end
            start = max(0, seen_start - reach)
        end = max(end, min(size, seen_end + reach))
    if end:
        yield start, end
