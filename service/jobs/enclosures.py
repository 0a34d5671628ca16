"""What jobs carry beside their spec: variables and client certificates, opened as they are dealt.

They are part of the answer alone. Most jobs need none of it, and those cost no more than a look.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection

from contract.checks import HTTP_TYPES, Lane
from service.certificates import handing as certificates
from service.jobs.model import JobPlace, ReadyJob
from service.variables import handing as variables
from service.variables.handing import RunVariables
from service.variables.model import Owner
from service.vault.sealing import Vault

_MAIN: Final = Lane.MAIN.value
_PLACE: Final = re.compile(rb"\{\{([^{}]+)\}\}")
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")


class Enclosed(NamedTuple):
    """JSON, to be put into a job as it is. Unset: nothing."""

    variables: msgspec.Raw | msgspec.UnsetType
    client_certificates: msgspec.Raw | msgspec.UnsetType


def may_carry(job: ReadyJob, place: JobPlace) -> bool:
    """Whether it is worth to look for what the job carries; said in 0.1 µs."""
    return job.lane == _MAIN or b"{{" in job.spec or place.presents


def enclosures(
    connection: Connection, vault: Vault, place: JobPlace, jobs: Iterable[ReadyJob]
) -> Mapping[int, Enclosed]:
    """What these jobs carry, by their ids; one that carries nothing is left out."""
    users = [job for job in jobs if job.lane == _MAIN or job.check_type in HTTP_TYPES]
    if not users:
        return {}
    wanting = [job for job in users if job.lane == _MAIN or b"{{" in job.spec]
    shown = _certificates(connection, vault, place) if place.presents else msgspec.UNSET
    filled = _variables(connection, vault, place, wanting)
    return {job.id: Enclosed(filled.get(job.id, msgspec.UNSET), shown) for job in users}


def _certificates(connection: Connection, vault: Vault, place: JobPlace) -> msgspec.Raw:
    """Once for all jobs of a round."""
    found = certificates.for_runs(connection, vault, place.account_id)
    return msgspec.Raw(msgspec.json.encode(found))


def _variables(
    connection: Connection, vault: Vault, place: JobPlace, jobs: Sequence[ReadyJob]
) -> dict[int, msgspec.Raw]:
    if not jobs:
        return {}
    owners = {owner for job in jobs for owner in _owners(job, place)[1:]}
    found = variables.for_runs(connection, vault, place.account_id, owners=owners)
    return {job.id: msgspec.Raw(_of_job(job, place, found)) for job in jobs}


def _of_job(job: ReadyJob, place: JobPlace, found: RunVariables) -> bytes:
    """Scripts have all, requests those that they name."""
    names = None if job.lane == _MAIN else _named(job.spec)
    return msgspec.json.encode(found.of(_owners(job, place), names=names))


def _owners(job: ReadyJob, place: JobPlace) -> tuple[Owner, ...]:
    """Account, group if any, check; later ones win."""
    account, check = Owner.account(place.account_id), Owner.check(place.account_id, job.check_id)
    if job.group_id is None:
        return account, check
    return account, Owner.group(place.account_id, job.group_id), check


def _named(spec: bytes) -> frozenset[str]:
    """Every word in a place of the spec: names, and what helpers are told."""
    places = (place.decode() for place in _PLACE.findall(spec))
    return frozenset(word for place in places for word in _WORD.findall(place))
