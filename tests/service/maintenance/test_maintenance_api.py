from typing import Any

import pytest
from sqlalchemy import Connection

from service.maintenance import window_changes
from service.maintenance.actions import find_open, windows_between
from tests.builders.engines import ON_SQLITE
from tests.servers.public_api import ApiUser, PublicApi

PATH = "/v1/maintenance-windows"
HOUR_MS = 3_600_000
START_MS = 1_796_349_600_000  # 2026-12-04T02:00:00Z
BODY = {
    "name": "Backups",
    "tags": ["shop", "db", "shop"],
    "startsAt": "2026-12-04T02:00:00.000Z",
    "endsAt": "2026-12-04T04:00:00.000Z",
    "repeatInterval": 1,
    "repeatUnit": "WEEK",
    "repeatEndsAt": "2027-12-31T23:59:59.000Z",
}


async def a_window(user: ApiUser, **more: Any) -> dict[str, Any]:
    answer = await user.post(PATH, {**BODY, **more})
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def test_a_window_is_made_read_changed_and_deleted(alice: ApiUser) -> None:
    first = await a_window(alice)
    assert first == {
        **BODY,
        "id": first["id"],
        "tags": ["shop", "db"],
        "showOnStatusPages": False,
        "rrule": None,
        "timeZone": "UTC",
        "created_at": first["created_at"],
        "updated_at": None,
    }
    path = f"{PATH}/{first['id']}"
    assert (await alice.get(path)).body == first
    new = {
        "name": "Upgrade",
        "startsAt": "2026-12-04T02:00:00",
        "endsAt": "2026-12-04T03:00:00",
        "rrule": "FREQ=MONTHLY;BYDAY=1FR",
        "timeZone": "Europe/Berlin",
    }
    changed = await alice.put(path, new)
    assert changed.status == 200
    assert changed.body == {
        **first,
        **new,
        "startsAt": "2026-12-04T01:00:00.000Z",
        "endsAt": "2026-12-04T02:00:00.000Z",
        "repeatInterval": None,
        "repeatUnit": None,
        "repeatEndsAt": None,
        "updated_at": changed.body["updated_at"],
    }
    assert (await alice.delete(path)).status == 204
    assert [answer.status for answer in (await alice.get(path), await alice.delete(path))] == [
        404,
        404,
    ]


async def test_what_clients_send_back_is_taken_again(alice: ApiUser) -> None:
    first = await a_window(alice, repeatInterval=None, repeatUnit="", repeatEndsAt="")
    again = await alice.put(f"{PATH}/{first['id']}", first)
    assert again.status == 200
    assert again.body == {**first, "updated_at": again.body["updated_at"]}


async def test_windows_are_listed_in_pages_oldest_first(alice: ApiUser) -> None:
    for order in range(12):
        await a_window(alice, name=f"w{order}")
    first, second = await alice.get(PATH), await alice.get(f"{PATH}?limit=5&page=3")
    assert [one["name"] for one in first.body] == [f"w{order}" for order in range(10)]
    assert [one["name"] for one in second.body] == ["w10", "w11"]
    for query in ("limit=0", "limit=101", "page=x", "startsAt=soon", "endsAt=late"):
        assert (await alice.get(f"{PATH}?{query}")).status == 400


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("startsAt=2026-12-04T02:00:00Z", ["early", "late"]),
        ("startsAt=2026-12-04T02:00:01Z", ["late"]),
        ("endsAt=2026-12-04T04:00:00Z", ["early"]),
        (f"endsAt={START_MS // 1000 + 7200}", ["early"]),
        ("endsAt=2026-12-04T03:59:59Z", []),
        ("startsAt=2026-12-05T00:00:00Z&endsAt=2026-12-06T00:00:00Z", ["late"]),
    ],
)
async def test_a_list_is_narrowed_to_a_time(alice: ApiUser, query: str, names: list[str]) -> None:
    await a_window(alice, name="early")
    later = {"startsAt": "2026-12-05T02:00:00Z", "endsAt": "2026-12-05T03:00:00Z"}
    await a_window(alice, name="late", **later)
    assert [one["name"] for one in (await alice.get(f"{PATH}?{query}")).body] == names


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"name": ""}, "name"),
        ({"tags": ["x" * 251]}, "tags"),
        ({"startsAt": None}, "startsAt"),
        ({"startsAt": "soon"}, "startsAt"),
        ({"endsAt": "2026-12-04"}, "endsAt"),
        ({"repeatInterval": -1}, "repeatInterval"),
        ({"repeatInterval": 1001}, "repeatInterval"),
        ({"repeatUnit": "YEAR"}, "repeatUnit"),
        ({"repeatUnit": None}, "repeatUnit"),
        ({"repeatEndsAt": "never"}, "repeatEndsAt"),
        ({"rrule": "FREQ=DAILY"}, "rrule"),
        ({"repeatInterval": None, "rrule": "FREQ=SECONDLY"}, "rrule"),
        ({"repeatInterval": None, "rrule": "X" * 501}, "rrule"),
        ({"timeZone": "Nowhere"}, "timeZone"),
        ({"timezone": "Europe/Berlin"}, "timezone"),
    ],
)
async def test_a_wrong_field_is_named(alice: ApiUser, more: dict[str, Any], key: str) -> None:
    answer = await alice.post(PATH, {**BODY, **more})
    assert answer.status == 400
    assert key in "".join(answer.body["validation"]["keys"]), answer.body


async def test_an_account_has_a_bounded_number_of_windows_that_are_not_over(
    alice: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_changes, "MOST_WINDOWS", 1)
    past = {"startsAt": "2020-01-01", "endsAt": "2020-01-02", "repeatInterval": None}
    over = await a_window(alice, **past)
    first = await a_window(alice)
    assert (await alice.post(PATH, BODY)).status == 409
    assert (await alice.put(f"{PATH}/{over['id']}", BODY)).status == 409
    assert (await alice.put(f"{PATH}/{first['id']}", BODY)).status == 200
    await a_window(alice, **past)


async def is_open(api: PublicApi, user: ApiUser, now_ms: int, *tags: str) -> bool:
    def ask(connection: Connection) -> bool:
        account_id = user.secrets.account_id
        return find_open(connection, account_id, tags, now_ms=now_ms) is not None

    return await api.database.read(ask)


async def test_a_window_applies_to_checks_with_any_of_its_tags(
    api: PublicApi, alice: ApiUser
) -> None:
    await a_window(alice)
    assert await is_open(api, alice, START_MS, "other", "db")
    assert not await is_open(api, alice, START_MS, "other")
    assert not await is_open(api, alice, START_MS)
    assert not await is_open(api, alice, START_MS - 1, "db")
    assert await is_open(api, alice, START_MS + 7 * 24 * HOUR_MS, "shop")
    assert not await is_open(api, alice, START_MS + 2 * HOUR_MS, "shop")


async def test_a_window_without_tags_applies_to_all_checks_of_its_account(
    api: PublicApi, alice: ApiUser, charlie: ApiUser
) -> None:
    await a_window(alice, tags=None)
    assert await is_open(api, alice, START_MS)
    assert await is_open(api, alice, START_MS, "any")
    assert not await is_open(api, charlie, START_MS, "any")


async def test_a_window_that_is_deleted_is_open_no_more(api: PublicApi, alice: ApiUser) -> None:
    first = await a_window(alice)
    await alice.delete(f"{PATH}/{first['id']}")
    assert not await is_open(api, alice, START_MS, "db")


async def test_between_two_times_all_that_apply_are_told_by_their_beginning(
    api: PublicApi, alice: ApiUser
) -> None:
    weekly = await a_window(alice)
    later = {"startsAt": "2026-12-04T03:00:00Z", "endsAt": "2026-12-20T00:00:00Z"}
    once = await a_window(alice, repeatInterval=None, tags=[], **later)
    await a_window(alice, tags=["other"])

    def ask(connection: Connection) -> list[tuple[int, int]]:
        found = windows_between(
            connection,
            alice.secrets.account_id,
            ("db",),
            START_MS,
            START_MS + 8 * 24 * HOUR_MS,
        )
        return [(one.window_id, (one.begins_ms - START_MS) // HOUR_MS) for one in found]

    assert await api.database.read(ask) == [
        (weekly["id"], 0),
        (once["id"], 1),
        (weekly["id"], 7 * 24),
    ]


@ON_SQLITE
async def test_the_hot_query_uses_the_index(api: PublicApi, alice: ApiUser) -> None:
    def plan_of(connection: Connection) -> str:
        rows = connection.exec_driver_sql(
            "EXPLAIN QUERY PLAN SELECT * FROM maintenance_window"
            " WHERE account_id = 'a' AND starts_ms < 2 AND over_ms > 1 ORDER BY id"
        )
        return " ".join(str(row[3]) for row in rows)

    assert "ix_maintenance_window_account_id_over_ms" in await api.database.read(plan_of)
