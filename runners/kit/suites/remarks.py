"""What the reader of a suite's log should know, where its check and its packages disagree. Pure."""

from collections.abc import Iterator

from contract.scripted import PlaywrightSpec

_HERE = "chromium"


def remarks(spec: PlaywrightSpec, *, ran: str | None) -> Iterator[str]:
    """Sentences for the log. `ran`: the suite's own Playwright; None: it did not begin."""
    named = spec.playwright_version
    if ran is not None and named and named.removeprefix("v") != ran:
        yield (
            f"The check names Playwright {named}; the suite's packages hold {ran}, which was used."
        )
    missing = [name for name in spec.browsers if name != _HERE]
    if missing:
        yield (
            f"The check names {' and '.join(missing)}; at this location there is only Chromium, "
            "and projects for other browsers fail."
        )
