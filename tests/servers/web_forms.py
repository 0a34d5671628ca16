"""Forms of pages, as a browser without a script sends them."""

from collections.abc import Iterator
from html.parser import HTMLParser


class FormReader(HTMLParser):
    """The pairs that a browser without a script sends for the form of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.pairs: list[tuple[str, str]] = []
        self._templates = 0
        self._select: str | None = None
        self._options: list[tuple[str, bool]] = []
        self._textarea: str | None = None
        self._text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        self._templates += tag == "template"
        if self._templates:
            return
        if tag == "input" and "name" in found:
            self._input(found)
        elif tag == "select":
            self._select, self._options = found["name"], []
        elif tag == "option":
            self._options.append((found["value"], "selected" in found))
        elif tag == "textarea":
            self._textarea, self._text = found["name"], ""

    def _input(self, found: dict[str, str]) -> None:
        is_switch = found["type"] in {"checkbox", "radio"}
        if not is_switch or "checked" in found:
            is_line = found["type"] not in {"hidden", "checkbox", "radio"}
            # A browser takes line ends out of what has one line.
            value = found["value"].replace("\n", "") if is_line else found["value"]
            self.pairs.append((found["name"], value))

    def handle_endtag(self, tag: str) -> None:
        self._templates -= tag == "template"
        if tag == "select" and self._select and not self._templates:
            chosen = [value for value, is_chosen in self._options if is_chosen]
            first = [value for value, _ in self._options]
            self.pairs.append((self._select, (chosen or first)[-1 if chosen else 0]))
            self._select = None
        elif tag == "textarea" and self._textarea is not None:
            # The first line end of a textarea is no part of it.
            self.pairs.append((self._textarea, self._text.removeprefix("\n").replace("\n", "\r\n")))
            self._textarea = None

    def handle_data(self, data: str) -> None:
        if self._textarea is not None:
            self._text += data


def form_pairs(html: str) -> Iterator[tuple[str, str]]:
    """What the form of a page sends, without the token."""
    form = html.partition("data-form>")[2].partition("</form>")[0]
    return ((name, value) for name, value in FormReader(form).pairs if name != "csrf")


class Pairs(dict[str, str]):
    """Fields of a form, of which several may have one name."""

    def __init__(self, pairs: Iterator[tuple[str, str]]) -> None:
        self._pairs = list(pairs)

    def items(self) -> list[tuple[str, str]]:
        return self._pairs
