"""Regions that private locations stand for, read from a setting."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

_ANY: Final = "*"
_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class RegionLocations:
    """Which private location runs what names a region."""

    slugs: Mapping[str, str] = field(default_factory=dict)
    """The slug of a location by region; `*` is any region that is not named."""

    def find_slug(self, region: str, known: Collection[str]) -> str | None:
        """The slug of the location that runs what names the region. None: none does.

        `known`: the slugs of the account's locations. One with the region's own name comes first.
        """
        if region in known:
            return region
        slug = self.slugs.get(region, self.slugs.get(_ANY))
        return slug if slug in known else None

    def list_regions(self, regions: Collection[str], known: Collection[str]) -> list[str]:
        """Those of the regions in which something runs."""
        return [one for one in regions if self.find_slug(one, known)]

    def explain(self, region: str, known: Collection[str]) -> str:
        """Why nothing runs in the region, as the end of a sentence, and what to do."""
        have = f"there are {', '.join(known)}" if known else "there are none yet"
        wanted = self.slugs.get(region, self.slugs.get(_ANY))
        if wanted:
            return f"REGION_LOCATIONS maps it to {wanted}, which is no private location; {have}"
        return (
            "a region is served through a private location with its name, or through one that the"
            f" service's setting REGION_LOCATIONS maps it to; {have}"
        )


NO_REGIONS: Final = RegionLocations()
"""None are mapped."""


def parse_regions(text: str) -> RegionLocations:
    """Read pairs such as `eu-central-1=default,*=default`, with blanks or commas between them.

    Raises:
        ValueError: with the rest of a sentence that says what is wrong.
    """
    slugs: dict[str, str] = {}
    for word in text.replace(",", " ").split():
        region, equals, slug = word.partition("=")
        is_region = region == _ANY or _SLUG.fullmatch(region)
        if not (equals and is_region and _SLUG.fullmatch(slug)):
            raise ValueError(
                f"has {word}; write a region or *, = and the slug of a private location, as in"
                " *=default"
            )
        slugs[region] = slug
    return RegionLocations(slugs)
