"""The pages on which a resource is added, changed and deleted."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.http.errors import NotFoundError
from service.projects import actions as projects
from service.projects.model import Project
from service.vault.texts import HIDDEN
from service.web.api_calls import ApiAnswer
from service.web.form_data import read_form
from service.web.forms.api_problems import divide, summarize
from service.web.forms.controls import build, place_problems
from service.web.forms.deletion import Deletion, ask_to_delete
from service.web.forms.field_schema import ABSENT, Field, offer
from service.web.forms.form_state import Parser, Sent, State, Unreadable, collect, express
from service.web.forms.resource_form import Document, Form, Resource, arrange
from service.web.page_routing import Pages
from service.web.visit import Visit

_ONCE: Final = "#once"
"""The field with a key that a creation is done once with, however often it is sent."""
_SEEN: Final = "#seen"
"""The field that tells which version the form was filled from."""
_TYPED: Final = "#name"
"""The field in which the name is typed of what is deleted."""
_PLACES: Final = "privateLocations"
"""The field that says where something runs."""
_UNPROCESSABLE: Final = 422
_NOT_FOUND: Final = 404
CHANGED: Final = (
    "Somebody else changed this after you had opened the form. Nothing was saved. Save again to"
    " replace it with what stands here."
)
_WRONG_NAME: Final = "This is not its name. Nothing was deleted."


def resource_routes(pages: Pages, resource: Resource) -> tuple[BaseRoute, ...]:
    """`/X/new`, `/X/{id}/edit` and `/X/{id}/delete`, each with what their forms are sent to.

    Those are left out for which the resource has no operation.
    """
    forms = _ResourcePages(resource)
    new, one = f"{resource.path}/new", f"{resource.path}/{{id}}"
    edit = resource.path if resource.is_alone else f"{one}/edit"
    routes: list[BaseRoute] = []
    if any(form.create for form in resource.forms):
        routes += [pages.show(new, forms.show_new), pages.change(new, forms.create)]
    if any(form.replace for form in resource.forms):
        routes += [pages.show(edit, forms.show_edit), pages.change(edit, forms.replace)]
    if resource.delete:
        deleting = f"{one}/delete"
        routes += [pages.show(deleting, forms.show_delete), pages.change(deleting, forms.delete)]
    return tuple(routes)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a form comes back."""

    problems: Mapping[str, str]
    """By the path of the field; empty: of the form as a whole."""


@dataclass(frozen=True, slots=True)
class SentForm:
    """A form that was sent, read by the fields of its resource."""

    root: Field
    state: State
    body: dict[str, Any]
    """What goes to the API."""
    unreadable: Sequence[Unreadable]
    """Fields whose text cannot be read: nothing can be sent."""


async def read_sent(
    visit: Visit, resource: Resource, form: Form, stored: Document | None
) -> SentForm:
    """Read the form of a new resource, or of a stored one."""
    data = await read_form(visit.request)
    root = offer(form.root, await resource.options(visit, form))
    state = collect(root, Sent(data.pairs), "")
    parser = Parser()
    known = {one.name for one in root.fields}
    before = {name: value for name, value in (stored or {}).items() if name in known}
    kept = form.keep(stored or {}, root)
    body = {**kept, **form.send(parser.parse(root, state, before)), **form.fixed}
    return SentForm(root, state, body, parser.unreadable)


def _without_hidden(value: Any) -> Any:
    """A document in which what cannot be read is empty."""
    if isinstance(value, Mapping):
        return {name: _without_hidden(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_hidden(one) for one in value]
    return "" if value == HIDDEN else value


async def reopen(
    visit: Visit, resource: Resource, form: Form, pairs: Sequence[tuple[str, str]]
) -> Response:
    """The form of a new one with what stood in it when it was sent elsewhere."""
    root = offer(form.root, await resource.options(visit, form))
    return _ResourcePages(resource).fill(visit, form, root, collect(root, Sent(pairs), ""))


class _ResourcePages:
    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    # Adding.

    async def show_new(self, visit: Visit) -> Response:
        """An empty form, or the kinds to choose from."""
        form = self._resource.form_of(visit.request.query_params.get("kind", ""))
        if form is None:
            return visit.page("form_kinds.html", resource=self._resource)
        begun = {**await self._resource.begin(visit, form), **await self._copy(visit)}
        root = offer(form.root, await self._resource.options(visit, form))
        return self._page(visit, form, root, express(root, begun))

    async def _copy(self, visit: Visit) -> Document:
        """What the form of a new one has of another one; secrets stay where they are."""
        source = visit.request.query_params.get("copy")
        if not source:
            return {}
        path = self._resource.read.replace("{id}", quote(source, safe=""))
        answer = await visit.look(path)
        if answer.is_error:
            raise NotFoundError(answer.message)
        shown = _without_hidden(self._resource.show(answer.body))
        return {**shown, "name": f"{shown['name']} (copy)"}

    async def create(self, visit: Visit) -> Response:
        """Send a new one to the API."""
        data = await read_form(visit.request)
        form = self._resource.form_of(visit.request.query_params.get("kind", ""))
        if form is None:
            raise NotFoundError(f"There is no such kind of {self._resource.noun}.")
        sent = await read_sent(visit, self._resource, form, None)
        if sent.unreadable:
            return self._page(visit, form, sent.root, sent.state, refusal=_unreadable(sent))
        body = await self._resource.complete(visit, sent.body)
        answer = await visit.call(form.create, body, once=data.text(_ONCE))
        if answer.is_error:
            return self._page(visit, form, sent.root, sent.state, refusal=_refused(answer))
        if self._resource.after_new:
            return visit.go(self._resource.after_new.replace("{id}", self._key(answer.body)))
        return self._go_on(visit, answer.body)

    # Changing.

    async def show_edit(self, visit: Visit) -> Response:
        """The form of a stored one."""
        stored = await self._find(visit)
        form = await self._form_of(visit, stored)
        root = offer(form.root, await self._resource.options(visit, form))
        owner = await self._find_owner(visit, stored)
        return self._page(visit, form, root, express(root, stored), stored=stored, owner=owner)

    async def replace(self, visit: Visit) -> Response:
        """Send a changed one to the API."""
        data = await read_form(visit.request)
        stored = await self._find(visit)
        form = await self._form_of(visit, stored)
        sent = await read_sent(visit, self._resource, form, stored)
        refusal = None
        if sent.unreadable:
            refusal = _unreadable(sent)
        elif data.text(_SEEN) != _version(form, stored):
            refusal = _Refusal({"": CHANGED})
        else:
            answer = await visit.call(self._at(form.replace, visit), sent.body)
            if answer.is_error:
                refusal = _refused(answer)
            else:
                return self._go_on(visit, answer.body)
        owner = await self._find_owner(visit, stored)
        return self._page(
            visit, form, sent.root, sent.state, stored=stored, refusal=refusal, owner=owner
        )

    # Deleting.

    async def show_delete(self, visit: Visit) -> Response:
        """Ask whether it shall really be deleted."""
        return self._delete_page(visit, await self._find(visit))

    async def delete(self, visit: Visit) -> Response:
        """Delete it, if it is the one that is meant."""
        data = await read_form(visit.request)
        stored = await self._find(visit)
        name = self._resource.title_of(stored)
        if self._resource.is_named_to_delete and data.text(_TYPED) != name.strip():
            return self._delete_page(visit, stored, problem=_WRONG_NAME)
        answer = await visit.call(self._at(self._resource.delete, visit))
        if answer.is_error and answer.status != _NOT_FOUND:
            return self._delete_page(visit, stored, problem=answer.message)
        return visit.go(self._resource.list_path)

    async def _find(self, visit: Visit) -> Document:
        """A stored one, as keys see it that only read: secrets stay in the service."""
        answer = await visit.look(self._at(self._resource.read, visit))
        if answer.is_error:
            raise NotFoundError(answer.message)
        return self._resource.show(answer.body)

    async def _find_owner(self, visit: Visit, stored: Document) -> Project | None:
        """The project whose next deployment sets it back. None: none does."""
        kinds, key = self._resource.code_types, str(stored.get(self._resource.key))
        if not kinds:
            return None
        return await visit.read(lambda c: projects.find_owner(c, visit.account_id, kinds, key))

    async def _form_of(self, visit: Visit, stored: Document) -> Form:
        form = self._resource.form_of(await self._resource.kind_of(visit, stored))
        if form is None:
            raise NotFoundError(f"There is no form for this {self._resource.noun}.")
        return form

    def _at(self, operation: str, visit: Visit) -> str:
        return operation.replace("{id}", quote(visit.request.path_params.get("id", ""), safe=""))

    def _go_on(self, visit: Visit, saved: Document) -> Response:
        """To where one lands after saving, which shows a new key once."""
        key = self._resource.new_key_of(saved)
        if not key:
            return visit.go(self._after(saved))
        return visit.go_with_key(self._after(saved), key, of=str(saved[self._resource.key]))

    def _after(self, saved: Document) -> str:
        return (self._resource.after or self._resource.list_path).replace("{id}", self._key(saved))

    def _key(self, stored: Document) -> str:
        return quote(str(stored.get(self._resource.key, "")), safe="")

    def fill(self, visit: Visit, form: Form, root: Field, state: State) -> Response:
        """The form of a new one, filled in."""
        return self._page(visit, form, root, state)

    def _page(  # noqa: PLR0913 - what a form consists of
        self,
        visit: Visit,
        form: Form,
        root: Field,
        state: State,
        *,
        stored: Document | None = None,
        refusal: _Refusal | None = None,
        owner: Project | None = None,
    ) -> Response:
        whole = express(root, ABSENT) if state is ABSENT else state
        problems = dict(refusal.problems) if refusal else {}
        top = [problems.pop("")] if "" in problems else []
        is_alone = self._resource.is_alone
        controls, loose = place_problems(build(root, whole).inside, problems)
        return visit.page(
            "settings_form.html" if self._resource.is_setting else "form.html",
            status=_UNPROCESSABLE if refusal else 200,
            resource=self._resource,
            form=form,
            name=self._resource.title_of(stored) if stored else "",
            back=self._after(stored) if stored and not is_alone else self._resource.list_path,
            is_saved=is_alone and "saved" in visit.request.query_params and not refusal,
            sections=arrange(form.sections, controls),
            neighbors=[
                (one.path.replace("{id}", self._key(stored) if stored else "new"), one.title)
                for one in form.neighbors
                if stored or one.is_of_new
            ],
            owner=owner,
            problem=summarize(problems, [*top, *loose]) if refusal else "",
            once=secrets.token_urlsafe(16),
            seen=_version(form, stored) if stored else "",
            is_new=stored is None,
            action=f"{self._resource.path}/new" + (f"?kind={form.kind}" if form.kind else ""),
            try_path=form.try_path + (f"&id={self._key(stored)}" if stored else ""),
            try_places=_try_places(root, whole) if form.try_path else (),
        )

    def _delete_page(self, visit: Visit, stored: Document, *, problem: str = "") -> Response:
        resource = self._resource
        deletion = Deletion(
            noun=resource.noun,
            name=resource.title_of(stored),
            loss=resource.loss,
            place=resource.place,
            list_path=resource.list_path,
            back=self._after(stored),
            is_named=resource.is_named_to_delete,
        )
        return ask_to_delete(visit, deletion, problem=problem)


def _try_places(root: Field, state: State) -> list[tuple[str, str, bool]]:
    """Locations where the form can be tried: slug, name, and whether it is proposed."""
    places = next((one.options for one in root.fields if one.name == _PLACES), ())
    chosen = state.get(_PLACES, ())
    return [(one.key, one.label, one.key in chosen[:1]) for one in places]


def _refused(answer: ApiAnswer) -> _Refusal:
    return _Refusal(divide(answer))


def _unreadable(sent: SentForm) -> _Refusal:
    return _Refusal({one.path: f"This {one.sentence}" for one in sent.unreadable})


def _version(form: Form, stored: Document) -> str:
    """Tells two versions of a stored one apart, by what the form shows.

    An answer may also have what changes by itself, such as how long an incident has lasted.
    """
    shown = {one.name: stored.get(one.name) for one in form.root.fields}
    content: Any = msgspec.json.encode(shown, order="deterministic")
    return hashlib.sha256(content).hexdigest()[:16]
