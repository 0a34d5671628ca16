"""What the fields of a group may hold, and the sentence for what they may not."""

from typing import Any

import pytest

from tests.builders.groups import group_body
from tests.builders.made_groups import PATHS, a_group
from tests.servers.public_api import ApiUser

NO_HEADER_NAME = (
    '"apiCheckDefaults.headers[0]" is called a…; '
    "header names may not contain white space or a colon."
)
NO_SUCH_PLACE = (
    '"privateLocations[0]" is moon, and there is no private location of this slug; there are'
    " default."
)
TWO_ADDRESSES = (
    '"environmentVariables[0].key" is GROUP_BASE_URL, which apiCheckDefaults.url sets;'
    " give one of them."
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("fields", "key", "said"),
    [
        ({"name": ""}, "name", '"name" must not be empty.'),
        ({"concurrency": 0}, "concurrency", '"concurrency" is 0; use at least 1.'),
        ({"concurrency": 1.5}, "concurrency", '"concurrency" is 1.5; use a whole number.'),
        (
            {"retryStrategy": "NEVER"},
            "retryStrategy",
            "\"retryStrategy\" is NEVER; use one of 'FALLBACK'.",
        ),
        (
            {"retryStrategy": {"type": "FIXED", "maxRetries": 11}},
            "retryStrategy.maxRetries",
            '"retryStrategy.maxRetries" is 11; use at most 10.',
        ),
        (
            {"setupSnippetId": 77},
            "setupSnippetId",
            '"setupSnippetId" is 77, and there is no snippet with this id.',
        ),
        (
            {"setupSnippetId": 77, "localSetupScript": "1"},
            "setupSnippetId",
            '"setupSnippetId" conflicts with localSetupScript; use one of them.',
        ),
        (
            {"privateLocations": ["moon"]},
            "privateLocations[0]",
            NO_SUCH_PLACE,
        ),
        (
            {"apiCheckDefaults": {"headers": [{"key": "a", "value": "b\r\nc"}]}},
            "apiCheckDefaults.headers[0]",
            '"apiCheckDefaults.headers[0]" must not contain a line break.',
        ),
        (
            {"apiCheckDefaults": {"headers": [{"key": "a b", "value": "c"}]}},
            "apiCheckDefaults.headers[0]",
            NO_HEADER_NAME,
        ),
        (
            {
                "apiCheckDefaults": {"url": "https://a"},
                "environmentVariables": [{"key": "GROUP_BASE_URL", "value": "https://b"}],
            },
            "environmentVariables[0].key",
            TWO_ADDRESSES,
        ),
        (
            {"environmentVariables": [{"key": f"K{n}", "value": "v"} for n in range(51)]},
            "environmentVariables",
            '"environmentVariables" has 51 items; use at most 50.',
        ),
    ],
)
async def test_a_wrong_group_is_refused_with_a_sentence(
    alice: ApiUser, path: str, fields: dict[str, Any], key: str, said: str
) -> None:
    answer = await alice.post(path, group_body(**fields))
    assert answer.status == 400
    assert answer.body["message"] == said
    assert answer.body["validation"] == {"source": "payload", "keys": [key]}
    assert (await alice.get("/v1/check-groups")).body == []


@pytest.mark.parametrize("path", PATHS)
async def test_both_sides_of_the_limits(alice: ApiUser, path: str) -> None:
    fifty = [{"key": f"K{number}", "value": "v"} for number in range(50)]
    await a_group(alice, path, concurrency=1, environmentVariables=fifty)
    for retries in (1, 10):
        await a_group(alice, path, retryStrategy={"type": "FIXED", "maxRetries": retries})
    refused = await alice.post(path, group_body(retryStrategy={"type": "FIXED", "maxRetries": 0}))
    assert refused.status == 400


async def test_null_and_empty_are_taken_as_go_clients_send_them(alice: ApiUser) -> None:
    group = await a_group(
        alice,
        id=0,
        tags=None,
        locations=None,
        privateLocations=None,
        apiCheckDefaults=None,
        browserCheckDefaults=None,
        environmentVariables=None,
        alertChannelSubscriptions=None,
        setupSnippetId=0,
        localSetupScript="",
        runtimeId="",
        created_at="0001-01-01T00:00:00Z",
    )
    assert group["tags"] == group["environmentVariables"] == []
    assert group["apiCheckDefaults"]["headers"] == []
    assert (group["setupSnippetId"], group["localSetupScript"], group["runtimeId"]) == (
        None,
        None,
        None,
    )
