"""Descriptions of fields, which the OpenAPI document takes from the code."""

from typing import Any

from pydantic import Field

from service.http.performance.field_descriptions import DocumentedModel


class Fruit(DocumentedModel):
    """A model."""

    weight: float
    """In grams,
    without the box."""

    name: str

    colour: str = Field(default="red", alias="shade", description="As it is chosen.")
    """As it is written."""


class Sort(DocumentedModel):
    weight: float
    """What the sort weighs."""

    origin: Fruit
    """Where it comes from."""


class Apple(Fruit, Sort):
    """Of both."""

    core: int = Field(alias="coreSize")
    """In mm."""


def described(model: type[DocumentedModel]) -> dict[str, Any]:
    fields = model.model_json_schema()["properties"]
    return {name: field.get("description") for name, field in fields.items()}


def test_the_text_below_a_field_describes_it_and_one_that_is_given_comes_first() -> None:
    expected = {"weight": "In grams,\nwithout the box.", "name": None, "shade": "As it is chosen."}
    assert described(Fruit) == expected


def test_fields_of_several_bases_are_described_as_in_the_first() -> None:
    assert described(Apple) == {
        **described(Fruit),
        "origin": "Where it comes from.",
        "coreSize": "In mm.",
    }


def test_a_class_within_a_function_has_its_bases_texts() -> None:
    class Pear(Fruit):
        stem: int
        """Not found, and harmless."""

    assert described(Pear) == {**described(Fruit), "stem": None}
