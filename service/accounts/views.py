"""Accounts as the API shows them; pure."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from contract.runtimes import RUNTIMES
from service.accounts.model import AccountRow
from service.accounts.shapes import AccountShown, EntitlementsShown, Offered, RegionOffered

_PLAN: Final = "self-hosted"
_PLAN_NAME: Final = "Self-hosted"


def account_shown(row: AccountRow, *, alert_settings: dict[str, Any]) -> AccountShown:
    """A stored account as its answer."""
    return AccountShown(
        id=row.id,
        name=row.name,
        runtime_id=next(iter(RUNTIMES)),
        plan=_PLAN,
        plan_display_name=_PLAN_NAME,
        settings={},
        alert_settings=alert_settings,
    )


def entitlements_shown(slugs: Collection[str], regions: Mapping[str, str]) -> EntitlementsShown:
    """What an account with private locations of these slugs may use."""
    offered = [
        RegionOffered(id=region, name=name, available=region in slugs)
        for region, name in regions.items()
    ]
    return EntitlementsShown(
        plan=_PLAN,
        plan_display_name=_PLAN_NAME,
        addons={},
        locations=Offered(all=offered, max_per_check=len(offered)),
        entitlements=[],
    )
