"""The regions that checks may name, by their names for people."""

from typing import Final

from service.locations.model import RegionShown

REGIONS: Final[dict[str, str]] = {
    "us-east-1": "N. Virginia",
    "us-east-2": "Ohio",
    "us-west-1": "N. California",
    "us-west-2": "Oregon",
    "ca-central-1": "Montreal",
    "sa-east-1": "São Paulo",
    "eu-west-1": "Ireland",
    "eu-central-1": "Frankfurt",
    "eu-west-2": "London",
    "eu-west-3": "Paris",
    "eu-north-1": "Stockholm",
    "eu-south-1": "Milan",
    "me-south-1": "Bahrain",
    "ap-southeast-1": "Singapore",
    "ap-northeast-1": "Tokyo",
    "ap-east-1": "Hong Kong",
    "ap-southeast-2": "Sydney",
    "ap-southeast-3": "Jakarta",
    "ap-northeast-2": "Seoul",
    "ap-northeast-3": "Osaka",
    "ap-south-1": "Mumbai",
    "af-south-1": "Cape Town",
}


def regions_shown() -> list[RegionShown]:
    """All of them; this installation serves one where a private location has it as its slug."""
    return [RegionShown(region=region, name=name) for region, name in REGIONS.items()]
