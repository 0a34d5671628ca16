"""Checks that are not stored, made ready for a run: bodies that were sent, and copies of others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from contract.checks import HTTP_TYPES, CheckType, Lane
from service.checks.actions import find
from service.checks.changes import build_stored_doc, resolve_whole
from service.checks.environment_urls import VARIABLE, move_url
from service.checks.model import NO_LOCATION, UnstoredCheck
from service.checks.resolve import read_variables
from service.checks.schemas import CheckWrite
from service.checks.secrets import decrypt_for_people, encrypt
from service.db.ids import new_id
from service.groups import actions as groups
from service.groups.model import GroupRow
from service.groups.secrets import decrypt_for_people as decrypt_group
from service.groups.unstored_groups import UnstoredGroup
from service.http.errors import InvalidError
from service.variables import actions as variables
from service.variables.model import Owner
from service.variables.schemas import EnvironmentVariable
from service.vault.encryption import Scope
from service.vault.texts import HIDDEN


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTerms:
    """On what terms a check runs that is not stored."""

    slug: str | None
    """The slug of the location where it runs. None: at its own."""
    group: UnstoredGroup | None = None
    """None: the stored group that it names, if any."""
    like: str | None = None
    """The id of a stored check, whose values are used where the body hides them. None: it hides
    none."""
    variables: Sequence[EnvironmentVariable] = ()
    """They override its own."""
    updates_snapshots: bool = False
    """A browser check writes its snapshots anew."""
    environment_url: str | None = None
    """Where requests of URL and API checks go instead; scripts have it as `ENVIRONMENT_URL`. None:
    to their own addresses."""


def prepare_unstored(
    connection: Connection, scope: Scope, check: CheckWrite, terms: RunTerms
) -> UnstoredCheck:
    """What a run needs of a check as it was sent. Its variables are stored.

    Raises:
        NotFoundError: there is no such check as the one whose values are used.
        InvalidError: it names a group, location, snippet, bundle or snapshot that is not there.
        UnreadableError: secrets of its group cannot be decrypted.
    """
    like = terms.like
    before = find(connection, scope.account_id, like) if like else None
    if before and before.type != check.kind.value:
        raise InvalidError(f"The check {like} is of type {before.type}.", keys=("checkType",))
    stored = (lambda: decrypt_for_people(before, scope.vault).doc) if before else None
    doc = build_stored_doc(check, stored=stored, kept_token=None)
    return _Preparation(connection, scope, check.kind, doc).finish(
        terms, own=read_variables(check) or ()
    )


def prepare_copy(
    connection: Connection, scope: Scope, check_id: str, terms: RunTerms
) -> UnstoredCheck:
    """What a run needs of a copy of a stored check. Its variables are stored for the copy.

    Raises:
        NotFoundError: the account has no such check.
        InvalidError: it names a location, snippet or bundle that is not there any more.
        UnreadableError: secrets of it or of its group cannot be decrypted.
    """
    row = decrypt_for_people(find(connection, scope.account_id, check_id), scope.vault)
    kept = variables.find_of_checks(connection, [check_id]).get(check_id, ())
    own = [
        EnvironmentVariable(key=one.key, value=HIDDEN, locked=one.locked, secret=one.secret)
        for one in kept
    ]
    return _Preparation(connection, scope, CheckType(row.type), row.doc).finish(
        terms, own=own, kept_from=check_id
    )


@dataclass(frozen=True, slots=True)
class _Preparation:
    connection: Connection
    scope: Scope
    kind: CheckType
    doc: Mapping[str, Any]

    def finish(
        self,
        terms: RunTerms,
        *,
        own: Sequence[EnvironmentVariable],
        kept_from: str | None = None,
    ) -> UnstoredCheck:
        """The check in its group; `kept_from` is the check whose values hidden variables have."""
        check_id = new_id(self.scope.now_ms)
        updates = {"updateSnapshots": True} if terms.updates_snapshots else {}
        moved = _choose_url(self.kind, self.doc, terms.environment_url)
        doc = {**self.doc, **_choose_place(terms.slug), **updates, **moved}
        effect = resolve_whole(
            self.connection, self.scope, doc, kind=self.kind, group=self._find_group(terms)
        )
        if not effect.location_ids:
            raise InvalidError(NO_LOCATION, keys=("locations", "privateLocations"))
        of_group = terms.group.variables if terms.group else ()
        self._put_variables(
            check_id,
            _merge(own, (*terms.variables, *_environment(terms)), of_group),
            kept_from=kept_from or terms.like,
        )
        columns = encrypt(
            {"doc": doc, **effect.columns},
            self.scope.vault,
            account_id=self.scope.account_id,
            check_id=check_id,
        )
        return UnstoredCheck(
            id=check_id,
            type=self.kind,
            lane=Lane(effect.columns["lane"]),
            name=doc["name"],
            group_id=None if terms.group else effect.columns["group_id"],
            spec=columns["spec"],
            bundle_sha256=doc.get("codeBundlePath"),
            snapshots=" ".join(one["key"] for one in doc.get("snapshots") or ()) or None,
            location_ids=effect.location_ids,
        )

    def _find_group(self, terms: RunTerms) -> GroupRow | None:
        if terms.group:
            return terms.group.row
        account_id = self.scope.account_id
        stored = groups.find_named(self.connection, account_id, self.doc["groupId"])
        return decrypt_group(stored, self.scope.vault) if stored else None

    def _put_variables(
        self, check_id: str, wanted: Sequence[EnvironmentVariable], *, kept_from: str | None
    ) -> None:
        if not wanted:
            return
        owner = Owner.check(self.scope.account_id, check_id)
        source = Owner.check(self.scope.account_id, kept_from) if kept_from else owner
        variables.replace(self.connection, owner, wanted, vault=self.scope.vault, kept_from=source)


def _choose_place(slug: str | None) -> Mapping[str, Any]:
    return {"privateLocations": [slug], "locations": []} if slug is not None else {}


def _choose_url(kind: CheckType, doc: Mapping[str, Any], url: str | None) -> Mapping[str, Any]:
    if url is None or kind not in HTTP_TYPES:
        return {}
    request = doc["request"]
    return {"request": {**request, "url": move_url(request["url"], url)}}


def _environment(terms: RunTerms) -> tuple[EnvironmentVariable, ...]:
    url = terms.environment_url
    return (EnvironmentVariable(key=VARIABLE, value=url),) if url is not None else ()


def _merge(
    own: Sequence[EnvironmentVariable],
    overriding: Sequence[EnvironmentVariable],
    of_group: Sequence[EnvironmentVariable],
) -> list[EnvironmentVariable]:
    """Each key once, the check's own first, so that its fields keep their numbers."""
    values = {one.key: one for one in (*of_group, *own, *overriding)}
    order = dict.fromkeys(one.key for one in (*own, *overriding, *of_group))
    return [values[key] for key in order]
