"""Modules that have another name now can be imported by the old one, which says so."""

from __future__ import annotations

import pickle  # noqa: TID251 - what others have pickled must stay readable; no file is read this way
import sys
from importlib import import_module

import pytest

import fastlayers as fl
from fastlayers._moved import MOVED


def test_every_old_name_leads_to_what_is_there_now() -> None:
    for old, new in MOVED.items():
        sys.modules.pop(f"fastlayers.{old}", None)
        with pytest.warns(DeprecationWarning, match=rf"fastlayers\.{old} is now "):
            module = import_module(f"fastlayers.{old}")
        for home in map(import_module, (f"fastlayers.{home}" for home in new.split())):
            for name in home.__all__:
                assert getattr(module, name) is getattr(home, name), (old, name)
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            _ = module.nothing


def test_what_was_pickled_under_an_old_name_is_read() -> None:
    graph = pickle.dumps(fl.graph.Graph, protocol=0).replace(b"fastlayers.ir.graph", b"fastlayers.graph.ir")
    sys.modules.pop("fastlayers.graph.ir", None)
    with pytest.warns(DeprecationWarning, match="fastlayers.graph.ir is now"):
        assert pickle.loads(graph) is fl.graph.Graph


def test_names_that_never_were_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("fastlayers.graph.nothing")
