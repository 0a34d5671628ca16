"""`picket status-page export`, and what a plain file server makes of it."""

import io
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from picket.errors import CommandError, ExitCode
from picket.status_page import ExportOptions, choose_page, download_page, write_files
from tests.builders.status_pages import a_page, a_service, an_incident, say
from tests.servers.public_api import PublicApi, serve_public_api
from tests.servers.web_browser import collect_complaints, web_browser

LOGO = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42m"
    "Nk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def options(api: PublicApi, folder: Path, **changes: object) -> ExportOptions:
    """An export of Alice's page with her key."""
    environ = {"SERVICE_URL": api.url, "API_KEY": api.alice.secrets.api_key}
    values = {"wanted": "shop", "at": None, "environ": environ, **changes}
    return ExportOptions(out=folder / "site", data_dir=folder / "none", **values)  # type: ignore[arg-type]


async def test_the_files_open_from_a_plain_file_server(tmp_path: Path) -> None:
    async with serve_public_api(tmp_path) as api:
        service = await a_service(api.alice)
        await a_page(api.alice, service, logo=LOGO, isPrivate=True)
        incident = await an_incident(api.alice, service, name="Orders fail")
        await say(api.alice, incident, "RESOLVED")
        wish = options(api, tmp_path, at="https://files.example/status/")
        name, packed = await download_page(wish)
        write_files(packed, wish.out)
        count = write_files(packed, wish.out)

    assert (name, count) == ("Shop status", len(list(wish.out.iterdir())))
    feed = (wish.out / "feed.atom").read_text()
    assert 'href="https://files.example/status/feed.atom"' in feed
    handler = partial(QuietHandler, directory=str(wish.out))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            await look_at(f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
            thread.join()


async def look_at(url: str) -> None:
    """Open the page as a visitor of the file server does."""
    async with web_browser() as browser:
        page = await browser.new_page()
        complaints = collect_complaints(page)
        failed: list[str] = []
        page.on("response", lambda one: failed.append(one.url) if one.status >= 400 else None)

        await page.goto(url + "/")

        assert (
            await page.get_by_role("heading", level=1).inner_text()
            == "All services are operational."
        )
        await page.get_by_text("Orders fail").click()
        assert await page.get_by_text("It is resolved.").is_visible()
        assert await page.get_by_text("Written on").is_visible()
        assert await page.locator("form").count() == 0
        assert await page.evaluate("document.querySelector('img').naturalWidth") == 1
        width = "getComputedStyle(document.querySelector('main')).maxWidth"
        assert await page.evaluate(width) == "768px"
        for link in ("RSS", "Atom", "JSON Feed", "Status as JSON"):
            href = await page.get_by_role("link", name=link).get_attribute("href")
            assert (await page.request.get(f"{url}/{href}")).status == 200
        assert (complaints, failed) == ([], [])


class QuietHandler(SimpleHTTPRequestHandler):
    """A plain file server that writes no log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


async def test_a_page_is_found_by_address_last_part_or_name(tmp_path: Path) -> None:
    pages = [
        {"url": "shop", "name": "Shop"},
        {"url": "a", "name": "Two"},
        {"url": "b", "name": "Two"},
    ]
    for wanted in ("shop", "Shop", "https://picket.example/status/shop/"):
        assert choose_page(pages, wanted) == pages[0]
    with pytest.raises(CommandError, match="2 status pages are named Two; use one of a, b"):
        choose_page(pages, "Two")
    with pytest.raises(CommandError, match="there is no status page X; the account has shop, a, b"):
        choose_page(pages, "X")


async def test_a_wrong_key_is_said_with_its_exit_code(tmp_path: Path) -> None:
    async with serve_public_api(tmp_path) as api:
        environ = {"SERVICE_URL": api.url, "API_KEY": "cu_wrong"}
        with pytest.raises(CommandError) as refused:
            await download_page(options(api, tmp_path, environ=environ))
    assert refused.value.code is ExitCode.KEY_REFUSED


async def test_another_accounts_private_page_is_not_exported(tmp_path: Path) -> None:
    async with serve_public_api(tmp_path) as api:
        await a_page(api.alice, isPrivate=True)
        bob = await api.another_user("Bob")
        async with api.http.get(
            f"{api.url}/status/shop/export.zip",
            headers={"authorization": f"Bearer {bob.secrets.api_key}"},
        ) as answer:
            assert answer.status == 404


@pytest.mark.parametrize(
    "name", ["../evil.html", "/etc/evil.conf", "a/b.html", ".bashrc", "x.html\n"]
)
def test_no_file_is_written_outside_the_folder(tmp_path: Path, name: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, "x")
    out = tmp_path / "a" / "site"

    with pytest.raises(CommandError, match="the service sent a file named"):
        write_files(packed.getvalue(), out)

    assert list(tmp_path.rglob("*")) == []


def test_what_is_no_export_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="did not send an export"):
        write_files(b"<html>", tmp_path / "site")
