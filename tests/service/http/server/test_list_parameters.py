"""Lists in a query may be written with brackets, as axios writes them."""

import pytest

from service.http.server.list_parameters import strip_brackets
from tests.servers.service import RunningService


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"tag[]=a&tag[]=b", b"tag=a&tag=b"),
        (b"limit=5&tag%5B%5D=a", b"limit=5&tag=a"),
        (b"tag%5b%5d=a", b"tag=a"),
        (b"tag=a[]&search=x%5B%5D", b"tag=a[]&search=x%5B%5D"),
        (b"tag[0]=a", b"tag[0]=a"),
        (b"", b""),
    ],
)
def test_brackets_at_the_end_of_a_name_are_taken_off_and_no_others(
    written: bytes, read: bytes
) -> None:
    assert strip_brackets(written) == read


async def test_checks_are_filtered_by_tags_that_are_written_with_brackets(
    service: RunningService,
) -> None:
    await service.a_url_check(name="Shop", tags=["shop", "live"])
    await service.a_url_check(name="Blog", tags=["blog", "live"])
    for query in ("tag[]=live&tag[]=shop", "tag%5B%5D=live&tag%5B%5D=shop"):
        found = await service.alice.get(f"/v1/checks?{query}")
        assert [check["name"] for check in found.body] == ["Shop"]
