"""Status pages in requests and answers."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from service.http.schema import (
    RequestModel,
    ResponseModel,
    Text,
    blank_is_none,
    check_pattern,
    judged_by,
)
from service.http.times import Moment, format_time, moment, optional_moment
from service.incidents.schemas import IncidentShown
from service.status_pages.model import (
    Card,
    PageKey,
    ServiceShown,
    StatusPage,
    render_service,
)
from service.status_pages.rules import (
    find_domain_problem,
    find_link_problem,
    find_picture_problem,
    find_slug_problem,
)

_MOST_CARDS: Final = 100
_MOST_SERVICES: Final = 100
_MOST_LINK_LETTERS: Final = 2048
_MOST_PICTURE_LETTERS: Final = 200_000


class PageTheme(StrEnum):
    """Which colours a page has at first."""

    AUTO = "AUTO"
    LIGHT = "LIGHT"
    DARK = "DARK"


Colour = Annotated[
    Text,
    Field(max_length=100),
    check_pattern(r"[^;{}<>\"'\\]*", "must be a colour, without quotes, braces or semicolons"),
]
Picture = Annotated[
    Annotated[Text, Field(max_length=_MOST_PICTURE_LETTERS), judged_by(find_picture_problem)]
    | None,
    BeforeValidator(blank_is_none),
]


class ThemeColors(RequestModel):
    """The colours of a theme; those that are null are the usual ones, or follow from others."""

    body_background_color: Colour | None = None
    header_background_color: Colour | None = None
    header_font_color: Colour | None = None
    title_font_color: Colour | None = None
    body_font_color: Colour | None = None
    body_font_color_muted: Colour | None = None
    navigation_font_color: Colour | None = None
    link_font_color: Colour | None = None
    card_background_color: Colour | None = None
    border_color: Colour | None = None
    primary_button_background_color: Colour | None = None
    primary_button_font_color: Colour | None = None


class PageColors(RequestModel):
    """The colours of a page."""

    light: ThemeColors | None = None
    dark: ThemeColors | None = None


class CardService(RequestModel):
    """A service on a card."""

    id: Annotated[Text, Field(min_length=1, max_length=200)]


class CardWrite(RequestModel):
    """A card in a request."""

    id: Annotated[Text, Field(max_length=200)] | None = None
    """The card that it replaces. Null, or the id of no card of the page: it is new."""
    name: Annotated[Text, Field(min_length=1, max_length=255)]
    """The heading of the card."""
    services: Annotated[list[CardService], Field(max_length=_MOST_SERVICES)] = Field(
        default_factory=list
    )
    """The services that it shows, in this order."""


class StatusPageWrite(RequestModel):
    """A status page in a request."""

    name: Annotated[Text, Field(min_length=1, max_length=255)]
    """The title that visitors read."""
    url: Annotated[Text, Field(max_length=63), judged_by(find_slug_problem)]
    """The last part of the page's address; unique in the whole installation."""
    description: Annotated[Text, Field(max_length=500)] | None = None
    """A text below the title."""
    custom_domain: Annotated[
        Annotated[Text, Field(max_length=253), judged_by(find_domain_problem)] | None,
        BeforeValidator(blank_is_none),
    ] = None
    """A host name of its own; unique in the whole installation. Null: none."""
    theme_colors: PageColors | None = None
    """Null: the usual colours."""
    logo: Picture = None
    """The address of a picture. Null: none."""
    redirect_to: Annotated[
        Annotated[Text, Field(max_length=_MOST_LINK_LETTERS), judged_by(find_link_problem)] | None,
        BeforeValidator(blank_is_none),
    ] = None
    """Where a click on the logo leads. Null: nowhere."""
    favicon: Picture = None
    """The address of a small picture for the browser. Null: none."""
    default_theme: PageTheme = Field(default=PageTheme.AUTO, strict=False)
    """AUTO: as the visitor's device has it."""
    cards: Annotated[list[CardWrite], Field(max_length=_MOST_CARDS)]
    """What the page shows, in this order."""
    is_private: bool | None = None
    """Whether only holders of its key see it; making a page private creates the key. Null: as it
    is; a new page is public."""


class CardShown(ResponseModel):
    """A card of a status page."""

    id: str
    name: str
    services: list[ServiceShown]
    created_at: Moment = Field(alias="created_at")
    updated_at: Moment | None = Field(alias="updated_at")


class PageKeyShown(ResponseModel):
    """A key of a private status page."""

    id: str
    masked_key: str
    created_at: Moment = Field(alias="created_at")
    updated_at: Moment | None = Field(alias="updated_at")


class NewPageKeyShown(PageKeyShown):
    """A key of a private status page, as the answer that created it shows it."""

    raw_key: str
    """The key itself, which is not shown again."""


class StatusPageShown(ResponseModel):
    """A status page."""

    id: str
    account_id: str
    name: str
    url: str
    description: str | None
    custom_domain: str | None
    logo: str | None
    redirect_to: str | None
    favicon: str | None
    default_theme: PageTheme
    theme_colors: PageColors | None
    cards: list[CardShown]
    incidents: list[IncidentShown]
    """The 20 newest that touch a service of the page, the newest first."""
    is_private: bool
    keys: list[NewPageKeyShown | PageKeyShown]
    """Only the answer that creates a key holds its `rawKey`."""
    white_label: bool
    """Always false."""
    created_at: Moment = Field(alias="created_at")
    updated_at: Moment | None = Field(alias="updated_at")
    """Null: never changed."""


class StatusPageList(ResponseModel):
    """A part of the list of status pages."""

    length: int
    """How many entries this part has."""
    entries: list[StatusPageShown]
    """The oldest first."""
    next_id: str | None
    """What to send as `nextId` for the next part. Null: this is the last one."""


def build_look(body: StatusPageWrite) -> dict[str, Any]:
    """What is stored of how the page looks."""
    shown = {"description", "theme_colors", "logo", "redirect_to", "favicon", "default_theme"}
    return body.model_dump(mode="json", by_alias=True, include=shown)


def render_page(
    page: StatusPage, incidents: Sequence[Mapping[str, Any]], *, raw_keys: Mapping[str, str]
) -> dict[str, Any]:
    """A status page as its answer; `raw_keys` holds new keys by their ids."""
    return {
        "id": page.id,
        "accountId": page.account_id,
        "name": page.name,
        "url": page.url,
        "customDomain": page.custom_domain,
        **page.look,
        "cards": [_render_card(card) for card in page.cards],
        "incidents": list(incidents),
        "isPrivate": page.is_private,
        "keys": [_render_key(key, raw_keys.get(key.id)) for key in page.keys],
        "whiteLabel": False,
        "created_at": format_time(page.created_ms),
        "updated_at": format_time(page.updated_ms),
    }


def _render_card(card: Card) -> dict[str, Any]:
    return CardShown(
        id=card.id,
        name=card.name,
        services=[render_service(one) for one in card.services],
        created_at=moment(card.created_ms),
        updated_at=optional_moment(card.updated_ms),
    ).model_dump(mode="json")


def _render_key(key: PageKey, raw: str | None) -> dict[str, Any]:
    shown = PageKeyShown(
        id=key.id,
        masked_key=key.masked,
        created_at=moment(key.created_ms),
        updated_at=None,
    ).model_dump(mode="json")
    return shown if raw is None else {**shown, "rawKey": raw}
