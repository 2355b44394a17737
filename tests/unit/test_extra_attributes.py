import pytest

from odf_protocol.errors import MalformedError
from odf_protocol.events import ExtraAttributes
from odf_protocol.events.equality import means_the_same
from odf_protocol.events.extra_attributes import MAX_NESTING


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e16"),
        (1.5e300, "1.5e300"),
        (0.0001, "0.0001"),
        (1e-5, "0.00001"),
        (1.5e-5, "0.000015"),
        (1e-6, "1e-6"),
        (10**30, "1" + "0" * 30),
        ("é\n\u2028", '"é\\n\u2028"'),
        ([1, [None, True]], "[1,[null,true]]"),
        ({"b": 1, "a": {"é": 1, "z": 2}}, '{"a":{"z":2,"é":1},"b":1}'),
    ],
)
def test_value_has_one_way_to_be_written(value: object, text: str) -> None:
    assert ExtraAttributes.of({"a": value}).entries == f'{{"a":{text}}}'
    assert ExtraAttributes.of({"a": value}).to_dict() == {"a": value}


def test_foreign_text_is_kept_and_means_what_it_says() -> None:
    foreign = ExtraAttributes(entries='{ "b": 1, "a": 2 }')
    assert foreign.entries == '{ "b": 1, "a": 2 }'
    assert means_the_same(foreign, ExtraAttributes.of({"a": 2, "b": 1}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "[]",
        "null",
        '{"a":1',
        '{"a":1}x',
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        '{"a":1,"a":2}',
        '{"a":{"b":1,"b":1}}',
        '{"a":"\\ud800"}',
        '{"\\udfff":1}',
        '{"a":' + "1" * 5000 + "}",
    ],
)
def test_text_that_is_no_object_is_malformed(text: str) -> None:
    """WIRE-12."""
    with pytest.raises(MalformedError, match="ExtraAttributes"):
        ExtraAttributes(entries=text)


def test_nesting_is_bounded() -> None:
    def nested(levels: int) -> str:
        return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"

    assert ExtraAttributes(entries=nested(MAX_NESTING))
    for levels in (MAX_NESTING + 1, 900, 100_000):
        with pytest.raises(MalformedError, match="levels"):
            ExtraAttributes(entries=nested(levels))


def test_brackets_in_text_are_not_nesting() -> None:
    assert ExtraAttributes.of({"a": "[" * 100}).to_dict() == {"a": "[" * 100}


def test_what_is_not_json_cannot_be_written() -> None:
    with pytest.raises(TypeError):
        ExtraAttributes.of({"a": {1, 2}})
    with pytest.raises(ValueError, match="nan"):
        ExtraAttributes.of({"a": float("nan")})
