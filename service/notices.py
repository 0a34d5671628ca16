"""Notices that concern more than the process in which they are announced."""


class SharedNotice:
    """A notice that every process of the service is told, not only that which announced it."""

    __slots__ = ()
