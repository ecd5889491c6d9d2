"""examples/integrations/kserve.yaml against the classes that KServe and Kubernetes make of their schemas."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.kserve, pytest.mark.filterwarnings("default")]

FILE = Path(__file__).parents[2] / "examples" / "integrations" / "kserve.yaml"
PLAIN = {"str": str, "int": int, "bool": bool, "float": float}


def made(kind: str, value: Any, where: str) -> Any:
    """A value of the schema; every unknown field, missing field and wrong type is an error that says where."""
    import kserve.models
    import kubernetes.client.models

    if match := re.fullmatch(r"(?:list|List)\[(.*)\]", kind):
        assert isinstance(value, list), f"{where}: expected a list"
        return [made(match[1], item, f"{where}[{i}]") for i, item in enumerate(value)]
    if match := re.fullmatch(r"(?:dict|Dict)[(\[]str, (.*)[)\]]", kind):
        assert isinstance(value, dict), f"{where}: expected a mapping"
        return {key: made(match[1], item, f"{where}.{key}") for key, item in value.items()}
    if kind == "object":  # a number or a string
        assert isinstance(value, (int, str)), f"{where}: expected a number or a string"
        return value
    if kind in PLAIN:
        assert type(value) is PLAIN[kind], f"{where}: expected {kind}, got {value!r}"
        return value
    found = getattr(kserve.models, kind, None) or getattr(kubernetes.client.models, kind)
    assert isinstance(value, dict), f"{where}: expected {kind}"
    names = {word: name for name, word in found.attribute_map.items()}
    assert set(value) <= set(names), f"{where}: {sorted(set(value) - set(names))} not in {kind}"
    words = {names[word]: made(found.openapi_types[names[word]], item, f"{where}.{word}") for word, item in value.items()}
    return found(**words)  # raises ValueError where a required field is missing


def read() -> Any:
    import yaml

    return yaml.safe_load(FILE.read_text())


def test_the_runtime_is_of_its_schema() -> None:
    runtime = made("V1alpha1ClusterServingRuntime", read(), "runtime")
    (container,) = runtime.spec.containers
    assert container.name == "kserve-container"  # the name that KServe looks for
    ports = {port.container_port for port in container.ports}
    assert ports == {container.readiness_probe.http_get.port, container.liveness_probe.http_get.port}
    assert f"--http-port={ports.pop()}" in container.args


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        (("spec", "containers", 0, "imge"), "x", "'imge'"),
        (("spec", "protocolVersions"), "v2", "expected a list"),
        (("spec", "containers", 0, "ports", 0, "containerPort"), "8080", "expected int"),
        (("spec", "supportedModelFormats", 0, "name"), None, "expected str"),
    ],
)
def test_what_is_not_of_the_schema_is_found(field: tuple[Any, ...], value: Any, error: str) -> None:
    read_ = inner = read()
    for part in field[:-1]:
        inner = inner[part]
    inner[field[-1]] = value
    with pytest.raises(AssertionError, match=error):
        made("V1alpha1ClusterServingRuntime", read_, "runtime")


def test_the_command_is_one_that_fastlayers_has() -> None:
    from argparse import ArgumentParser

    from fastlayers.cli import serve

    parser = ArgumentParser()
    serve.arguments(parser)
    (container,) = read()["spec"]["containers"]
    assert container["command"] == ["fastlayers", "serve"]
    given = parser.parse_args(container["args"])
    assert (given.folder, given.name, given.host, given.port) == ("/mnt/models", "{{.Name}}", "0.0.0.0", 8080)
