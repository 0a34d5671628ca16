"""What is published of what happens to the runs of a test session."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection

from service.mqtt.rules import topic_of
from service.sessions.ad_hoc.progress_messages import load_messages
from service.sessions.model import RunProgressed


@dataclass(frozen=True, slots=True)
class Publication:
    """A message to those who have subscribed to its topic."""

    topic: str
    payload: bytes
    """JSON."""


def read_publications(
    connection: Connection, events: Iterable[RunProgressed], *, now_ms: int
) -> tuple[Publication, ...]:
    """What is published of these events; nothing where the session or its result is gone."""
    return tuple(_publications(connection, events, now_ms))


def _publications(
    connection: Connection, events: Iterable[RunProgressed], now_ms: int
) -> Iterator[Publication]:
    for event in events:
        for message in load_messages(connection, event, now_ms=now_ms):
            payload = msgspec.json.encode(message.body)
            yield Publication(topic_of(event, message.subtopic), payload)
