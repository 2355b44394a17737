"""Templates name variables of the environment; filling them in is a function of text and environment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_protocol.events import (
    EnvVar,
    FetchStepContainer,
    FetchStepEthereumLogs,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
    RequestHeader,
    SetInfo,
)
from odf_protocol.manifest import (
    MissingVariableError,
    TemplateError,
    find_variables,
    substitute,
    substitute_in_fetch,
)
from odf_protocol.manifest.templates import MAX_TEMPLATE_CHARACTERS
from support.manifests import parse_manifest

CASES = {
    "no-template": ("https://x/$a/{b}", "https://x/$a/{b}"),
    "one": ("https://x?key=${{ env.KEY }}&y", "https://x?key=secret&y"),
    "two": ("${{env.KEY}}${{ env.OTHER }}", "secretb c"),
    "default-not-needed": ("${{ env.KEY || 'd' }}", "secret"),
    "default": ("${{ env.NONE || 'd e' }}", "d e"),
    "second-variable": ("${{ env.NONE || env.KEY }}", "secret"),
    "empty-default": ("a${{ env.NONE || '' }}b", "ab"),
    "empty-variable-is-a-value": ("${{ env.EMPTY || 'd' }}", ""),
    "whole-number": ("${{ env.NONE || 1 }}", "1"),
    "number-as-written": ("a${{env.NONE||-1.50}}b", "a-1.50b"),
    "number-not-needed": ("${{ env.KEY || 2 }}", "secret"),
    "only-a-text": ("${{ 'x' }}", "x"),
    "line-breaks": ("${{\n env.KEY\n}}", "secret"),
    "value-is-not-read-again": ("${{ env.NESTED }}", "${{ env.KEY }}"),
}
ENVIRONMENT = {"KEY": "secret", "OTHER": "b c", "EMPTY": "", "NESTED": "${{ env.KEY }}"}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_template_is_filled_in(text, expected):
    assert substitute(text, ENVIRONMENT) == expected


def test_missing_variable_is_named():
    with pytest.raises(MissingVariableError, match="environment variable A or B is not set") as caught:
        substitute("${{ env.A || env.B }}", {})
    assert caught.value.names == ("A", "B")


MISTAKES = {
    "unclosed": ("x${{ env.A", 11, "expected '||' or '}}', found the end"),
    "empty": ("${{ }}", 4, "expected env.NAME, 'text' or a number, found ' }}'"),
    "unknown-source": ("${{ secret.A }}", 4, "expected env.NAME, 'text' or a number, found ' secret.A }}'"),
    "double-quotes": ('${{ "a" }}', 4, "expected env.NAME, 'text' or a number"),
    "word-without-quotes": ("${{ env.NONE || true }}", 16, "expected env.NAME, 'text' or a number"),
    "bad-name": ("${{ env.1A }}", 4, "expected env.NAME, 'text' or a number"),
    "single-bar": ("${{ env.A | 'b' }}", 11, "expected '||' or '}}', found \"| 'b' }}\""),
    "nothing-after-bars": ("${{ env.A || }}", 13, "expected env.NAME, 'text' or a number"),
    "unclosed-quote": ("${{ 'a }}", 4, "expected env.NAME, 'text' or a number"),
}


@pytest.mark.parametrize(("text", "character", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistake_in_a_template_is_placed(text, character, expected):
    with pytest.raises(TemplateError) as caught:
        substitute(text, {})
    assert f"at character {character}: {expected}" in str(caught.value)


def test_long_template_is_rejected():
    with pytest.raises(TemplateError):
        substitute("${{ '" + "x" * MAX_TEMPLATE_CHARACTERS + "' }}", {})


def test_variables_are_found_without_an_environment():
    assert find_variables("a${{ env.B || env.A || 'x' }}${{ env.B }}") == ("B", "A", "B")


@given(st.text("${} env.A'|x\n", max_size=30))
def test_any_text_is_filled_in_or_rejected(text):
    try:
        filled = substitute(text, {"A": "a", "x": "y"})
    except (TemplateError, MissingVariableError):
        return
    assert "${{" in text or filled == text


EVENT = "kind: MetadataEvent\nversion: 1\ncontent: {kind: SetInfo, description: '${{ env.WHO }}'}\n"


def test_manifest_keeps_templates_as_they_are_written():
    assert parse_manifest(EVENT, source_name="m") == SetInfo(description="${{ env.WHO }}")


ENV = {"A": "1"}
T = "${{ env.A }}"
STEPS = {
    "url": (
        FetchStepUrl(url=f"u{T}", headers=(RequestHeader(name=T, value=T),)),
        FetchStepUrl(url="u1", headers=(RequestHeader(name=T, value="1"),)),
    ),
    "container": (
        FetchStepContainer(image=T, command=(T,), args=("x", T), env=(EnvVar(name="A"), EnvVar(name="B", value=T))),
        FetchStepContainer(
            image="1", command=("1",), args=("x", "1"), env=(EnvVar(name="A"), EnvVar(name="B", value="1"))
        ),
    ),
    "bare-container": (FetchStepContainer(image=T), FetchStepContainer(image="1")),
    "ethereum": (FetchStepEthereumLogs(node_url=T, filter=T), FetchStepEthereumLogs(node_url="1", filter=T)),
    "mqtt": (
        FetchStepMqtt(host="h", port=1, username=T, password=T, topics=()),
        FetchStepMqtt(host="h", port=1, username="1", password="1", topics=()),
    ),
    "files": (FetchStepFilesGlob(path=T), FetchStepFilesGlob(path=T)),
}


@pytest.mark.parametrize(("step", "expected"), STEPS.values(), ids=STEPS.keys())
def test_fetch_step_is_filled_in_where_templates_are_allowed(step, expected):
    assert substitute_in_fetch(step, ENV) == expected
