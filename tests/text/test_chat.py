"""Chat templates: what transformers writes of the same messages, and programs that would take the machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import fastlayers as fl
from fastlayers.text import Generator, _chat
from fastlayers.text._chat import Template

from .folders import decoder, write_json

MESSAGES = [{"role": "user", "content": " ä <b> "}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "go"}]
# As published ones are written, with what each gives.
LISTED = '[{"role": "user", "content": " ä <b> "}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "go"}]'
TEMPLATES = [
    (
        "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] | trim + eos_token }}\n{% endfor %}",
        "[user] ä <b></s>\n[assistant] ok</s>\n[user] go</s>\n",
    ),
    (
        "{%- set ns = namespace(found=false) -%}{%- for m in messages[::-1] if m.role == 'user' and not ns.found -%}"
        "{{ m.content }}{%- set ns.found = true -%}{%- endfor -%}",
        "go",
    ),
    (
        "{% macro show(m) %}<{{ m.role|upper }}>{% endmacro %}"
        "{% for m in messages %}{{ show(m) }}{% if not loop.last %},{% endif %}{% endfor %}",
        "<USER>,<ASSISTANT>,<USER>",
    ),
    (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}"
        "{% continue %}{% endif %}x{% endfor %}",
        "xokx",
    ),
    ("{{ messages | tojson }}", LISTED),
    ("{{ messages | map(attribute='content') | map('trim') | join('|') }}", "ä <b>|ok|go"),
    (
        "{{ messages[0].content.replace('ä', 'a').strip().split(' ')[0] ~ 1 }}{{ 'yes' if tools is none else 'no' }}"
        "{{ ', '.join(['a', 'b']) }}",
        "a1yesa, b",
    ),
    (
        "{{ (messages | selectattr('role', 'equalto', 'user') | list | length) * 2 }}{{ '-' * 3 }}{{ bos_token }}"
        "{{ '%s' is string }}",
        "4---<s>True",
    ),
    (
        "{% set x = 'a' %}{% set x = x + 'b' %}{{ x }}{{ messages[1].get('name', 'none') }}{{ range(3) | list }}",
        "abnone[0, 1, 2]",
    ),
    ("{{ strftime_now('%Y')|int > 2000 }}{{ messages | length % 2 }}{{ none_such is defined }}", "True1False"),
    ("{{ 'a\nb' | indent(2) }}{{ 'aXa' | replace('a', 'b') }}", "a\n  bbXb"),
]
# Each must end soon with an error, and little memory.
PROGRAMS = r"""
{{ messages.__class__.__mro__ }}{{ ''.__class__.__base__.__subclasses__() }}
{{ cycler.__init__.__globals__ }}
{{ messages.append(1) }}
{{ messages[0].update({}) }}
{{ namespace.__init__.__globals__['os'] }}
{% include '/etc/passwd' %}
{% import 'os' as os %}
{% extends 'x' %}
{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}
{% for a in range(99999) %}{% for b in range(99999) %}{% if false %}x{% endif %}{% endfor %}{% endfor %}
{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}
{% for a in messages recursive %}{{ loop(messages) }}{% endfor %}
{% set x = namespace(a='x') %}{% for i in range(99) %}{% set x.a = x.a ~ x.a %}{% endfor %}
{% set x = namespace(a='x') %}{% for i in range(99) %}{% set x.a = x.a + x.a %}{% endfor %}
{% set x = namespace(a=[1]) %}{% for i in range(99) %}{% set x.a = x.a + x.a %}{% endfor %}
{% set x = namespace(a=[1]) %}{% for i in range(99) %}{% set x.a = [x.a, x.a] %}{% endfor %}{{ x.a }}
{% set x = namespace(a=2) %}{% for i in range(99) %}{% set x.a = x.a * x.a %}{% endfor %}
{{ 'x' * 10**10 }}
{{ [1] * 10**9 }}
{{ 9 ** (9 ** 9) }}
{{ 'x' | center(10**10) }}
{{ 'x'.ljust(10**10) }}
{{ '%10000000000d' % 1 }}
{{ '{:10000000000}'.format(1) }}
{{ 'x' | indent(10**10) }}
{{ messages | tojson(indent=10**10) }}
{{ 'x' | format }}
{{ ('x' * 100000) | list | join('x' * 100000) }}
{{ ('x' * 100000).replace('x', 'y' * 100000) }}
{{ ('x' * 100000) | replace('x', 'y' * 100000) }}
{{ ('x' * 100000).join(['y'] * 100000) }}
{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}
{{ 10**400 * 1.0 }}
{{ 1.5 | round(10**10) }}
{{ 'x' | wordwrap }}
{% for
{{ x.y.z }}
{{ 1 / 0 }}
{{ messages | nofilter }}
{{ messages | sort }}
{{ 'x' + 1 }}
{{ range(10**9) }}
{{ lipsum(n=10**6) }}
"""
HOSTILE = PROGRAMS.strip().split("\n")
LARGE = "{% set a = 'x' * 4000000 %}"
HOSTILE += [
    *(LARGE + "".join(f"{{% set a{i} = {value} %}}" for i in range(2000)) for value in ("a[1:]", "a | upper", "a | list")),
    "{{ " + "(" * 100000,
    "{% if " + "not " * 50000 + "x %}{% endif %}",
]


def render(source: str, **variables: Any) -> str:
    return Template(source, "test", {"bos_token": "<s>", "eos_token": "</s>"}).render(MESSAGES, variables)


def test_templates() -> None:
    for source, want in TEMPLATES:
        assert render(source) == want, source


@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_templates(source: str) -> None:
    began = time.monotonic()
    with pytest.raises((fl.FormatError, fl.LimitError)):
        pytest.fail(f"{source[:100]} gave {render(source)[:100]!r}")
    assert time.monotonic() - began < _chat.MOST_SECONDS + 5


def test_what_is_private_is_undefined() -> None:
    names = (
        "self.__init__",
        "raise_exception.__globals__",
        "messages.__class__",
        "''.format",
        "messages.append",
        "range.__self__",
    )
    for name in names:
        assert render(f"{{{{ {name} is defined }}}}{{{{ {name} }}}}") == "False", name


def test_a_clock_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_chat, "MOST_SECONDS", 0.05)
    monkeypatch.setattr(_chat, "MOST_STEPS", 10**9)
    with pytest.raises(fl.LimitError, match=r"takes more than 0.05 s"):
        render("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")


def test_a_template_refuses_messages() -> None:
    with pytest.raises(fl.ArgumentError, match="refuses the messages: 'no <b> here'"):
        render("{{ raise_exception('no <b> here') }}")


def test_variables() -> None:
    assert render("{{ enable_thinking }}{{ add_generation_prompt }}", enable_thinking=False) == "FalseTrue"


def test_messages_are_not_changed() -> None:
    with pytest.raises(fl.FormatError):
        render("{% set messages[0].x = 3 %}")
    with pytest.raises(fl.DTypeError, match=r"value of type .*Path"):
        render("{{ x }}", x=Path())


def test_where_templates_are(tmp_path: Path) -> None:
    folder = decoder(tmp_path)
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    made = Generator(folder)
    assert made.decode(made.encode([{"role": "user", "content": "the cat"}])) == "the cat"
    (folder / "chat_template.jinja").unlink()
    named = [{"name": "tools", "template": "x"}, {"name": "default", "template": "the dog"}]
    write_json(folder / "tokenizer_config.json", {"chat_template": named})
    made = Generator(folder)
    assert made.decode(made.encode(MESSAGES)) == "the dog"
    write_json(folder / "tokenizer_config.json", {})
    with pytest.raises(fl.FormatError, match="has no chat template"):
        Generator(folder).encode(MESSAGES)
    for wrong in (3, "x" * 300_000):
        write_json(folder / "tokenizer_config.json", {"chat_template": wrong})
        with pytest.raises((fl.FormatError, fl.LimitError), match="chat_template"):
            Generator(folder)
