"""Regions that a setting maps to private locations."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select

from service.db.tables.checks import check_location
from service.locations.regions import NO_REGIONS, RegionLocations, parse_regions
from tests.builders.check_bodies import check_body
from tests.servers.public_api import PublicApi, serve_public_api

MAPPED = parse_regions("eu-west-1=cellar, *=default")


@pytest.fixture
async def mapped(tmp_path: Path, postgresql_url: str | None) -> AsyncIterator[PublicApi]:
    async with serve_public_api(tmp_path, regions=MAPPED, postgresql_url=postgresql_url) as api:
        yield api


def test_a_location_with_the_regions_own_name_comes_first() -> None:
    known = ("default", "cellar", "us-east-1")
    assert MAPPED.find_slug("us-east-1", known) == "us-east-1"
    assert MAPPED.find_slug("eu-west-1", known) == "cellar"
    assert MAPPED.find_slug("eu-north-1", known) == "default"


def test_a_region_that_leads_to_no_location_is_explained() -> None:
    assert MAPPED.find_slug("eu-west-1", ("default",)) is None
    assert MAPPED.explain("eu-west-1", ("default",)) == (
        "REGION_LOCATIONS maps it to cellar, which is no private location; there are default"
    )
    assert NO_REGIONS.explain("eu-west-1", ()).endswith("there are none yet")


@pytest.mark.parametrize("text", ["default", "=default", "eu-west-1=", "eu-west-1=Cellar!"])
def test_a_pair_that_cannot_be_read_is_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="write a region"):
        parse_regions(text)


def test_nothing_is_mapped_without_the_setting() -> None:
    assert parse_regions("") == RegionLocations()
    assert NO_REGIONS.list_regions(["eu-west-1"], ["default"]) == []


async def test_checks_that_name_regions_run_where_they_are_mapped_to(mapped: PublicApi) -> None:
    regions = ["eu-central-1", "us-east-1"]
    body = check_body("url", locations=regions, privateLocations=[])
    made = await mapped.alice.post("/v1/checks/url", body)
    places = await mapped.database.read(
        lambda c: c.execute(select(check_location.c.location_id)).scalars().all()
    )

    assert made.status == 201, made.body
    assert made.body["locations"] == regions
    assert places == [mapped.alice.secrets.location_id]


async def test_a_region_whose_location_is_missing_is_refused_with_what_there_is(
    mapped: PublicApi,
) -> None:
    body = check_body("url", locations=["eu-west-1"], privateLocations=[])
    refused = await mapped.alice.post("/v1/checks/url", body)
    group = await mapped.alice.post(
        "/v1/check-groups", {"name": "Shop", "locations": ["eu-west-1"]}
    )

    assert (refused.status, group.status) == (400, 400)
    assert "maps it to cellar, which is no private location" in refused.body["message"]
    assert refused.body["validation"]["keys"] == ["locations[0]"]


async def test_the_regions_of_an_account_are_those_in_which_something_runs(
    mapped: PublicApi,
) -> None:
    answer = await mapped.alice.get("/v1/accounts/me/entitlements")
    available = {one["id"]: one["available"] for one in answer.body["locations"]["all"]}
    assert available["eu-central-1"]
    assert not available["eu-west-1"]
