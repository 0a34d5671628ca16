"""`/settings/alerting`: when checks alert that have no alert settings of their own."""

from typing import Final

from starlette.routing import BaseRoute

from service.checks.fields import AlertSettings
from service.web.forms.resource_form import Form, Resource, Section
from service.web.forms.resource_pages import resource_routes
from service.web.page_routing import Pages

ALERT_SETTINGS: Final = Resource(
    path="/settings/alerting",
    home="/settings",
    noun="alert settings",
    place="Settings",
    read="GET /v1/accounts/me",
    forms=(
        Form(
            title="alert settings",
            sentence="When checks alert that use the account's alert settings.",
            model=AlertSettings,
            replace="PUT /v1/accounts/me/alert-settings",
            sections=(
                Section(
                    title="Escalation",
                    fields=("escalationType", "runBasedEscalation", "timeBasedEscalation"),
                ),
                Section(
                    title="Share of locations",
                    fields=("parallelRunFailureThreshold",),
                    hint="For checks that run at all locations at once.",
                ),
                Section(title="Reminders", fields=("reminders",)),
            ),
        ),
    ),
    is_alone=True,
    show=lambda account: account["alertSettings"],
    title_of=lambda _settings: "Alert settings",
    after="/settings/alerting?saved=1",
)


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The form."""
    return resource_routes(pages, ALERT_SETTINGS)
