"""Choosing a password by a link."""

from dataclasses import replace

from service.sign_in import actions as sign_in
from tests.builders.web_users import a_user
from tests.servers.public_api import PEPPER, PublicApi
from tests.service.web.conftest import WebUser, enter, sign_in_user

NEW = "another long password"


async def a_link(api: PublicApi, user_id: str) -> str:
    raw = await api.database.write(
        lambda c: sign_in.create_password_link(
            c, PEPPER, user_id, now_ms=api.backend.clock.now_ms(c)
        )
    )
    return f"/password/{raw}"


async def test_a_user_chooses_a_password_once_and_is_signed_in(
    api: PublicApi, web: WebUser
) -> None:
    user = await a_user(api, password=None)
    link, stranger = await a_link(api, user.id), replace(web, session="")

    assert "ann@example.com" in (await stranger.get(link)).text
    ann = await enter(api, {"password": NEW}, link)

    assert "ann@example.com" in (await ann.get("/settings")).text
    assert (await stranger.get(link)).status == 404
    await sign_in_user(api, user.email, NEW)


async def test_a_password_that_is_too_short_leaves_the_link_good(
    api: PublicApi, web: WebUser
) -> None:
    user = await a_user(api, password=None)
    link, stranger = await a_link(api, user.id), replace(web, session="")

    refused = await stranger.post(link, {"password": "short"}, token="")

    assert refused.status == 422
    assert "5 characters; use 12 to 256" in refused.text
    await enter(api, {"password": NEW}, link)


async def test_blanks_are_a_part_of_a_password(api: PublicApi) -> None:
    user = await a_user(api, password=None)

    await enter(api, {"password": f"  {NEW} "}, await a_link(api, user.id))

    await sign_in_user(api, user.email, f"  {NEW} ")


async def test_a_sign_in_link_sets_no_password_and_a_password_link_signs_nobody_in(
    api: PublicApi, web: WebUser
) -> None:
    user = await a_user(api)
    link, stranger = await a_link(api, user.id), replace(web, session="")

    assert (await stranger.get(link.replace("/password/", "/sign-in/"))).status == 422
    assert (await stranger.get(link)).status == 200


async def test_a_new_password_ends_the_sessions_and_links_before_it(
    api: PublicApi, web: WebUser
) -> None:
    user = await a_user(api)
    ann = await sign_in_user(api, user.email)
    first, second = [await a_link(api, user.id) for _ in range(2)]

    await enter(api, {"password": NEW}, first)

    assert (await ann.get("/settings")).status == 303
    assert (await replace(web, session="").get(second)).status == 404


async def test_a_disabled_user_cannot_choose_one(api: PublicApi, web: WebUser) -> None:
    user = await a_user(api)
    await api.database.write(lambda c: sign_in.disable_user(c, user.id, now_ms=1))
    link = await a_link(api, user.id)

    assert (await replace(web, session="").get(link)).status == 404
