"""Notices that concern more than the process in which they are announced."""

from dataclasses import dataclass


class SharedNotice:
    """A notice that every process of the service is told, not only that which announced it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class GatheredNotice(SharedNotice):
    """A shared notice that names things by their ids.

    Other processes are told of them some times a second, of all together, each id once.
    """

    ids: tuple[str, ...]
