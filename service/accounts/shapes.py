"""What the API answers about accounts."""

from typing import Any

from service.http.strict import Shown


class RegionOffered(Shown):
    """A region, and whether this account has agents for it."""

    id: str
    name: str
    available: bool
    """A private location of the account has this region as its slug."""


class Offered(Shown):
    """Where checks may run."""

    all: list[RegionOffered]
    max_per_check: int


class EntitlementsShown(Shown):
    """What an account may use: everything, as there are no plans."""

    plan: str
    plan_display_name: str
    addons: dict[str, Any]
    """Always empty."""
    locations: Offered
    entitlements: list[dict[str, Any]]
    """Always empty: nothing is kept back that would be named here."""


class AccountShown(Shown):
    """An account."""

    id: str
    """What the header x-service-account may name."""
    name: str
    runtime_id: str
    """What scripts run on that name no runtime."""
    plan: str
    """Always self-hosted: there are no plans."""
    plan_display_name: str
    settings: dict[str, Any]
    """Of the account; there are none yet."""
    alert_settings: dict[str, Any]
    """Of checks with useGlobalAlertSettings."""
