"""Execution providers: what may be named, and what is there, which is the processor."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from .._arguments import shown
from ..errors import ArgumentError, DTypeError
from ._errors import OrtRuntimeError

__all__ = ["CPU", "check_and_normalize_provider_args", "get_all_providers", "get_available_providers", "registered"]

CPU = "CPUExecutionProvider"
# Those that onnxruntime knows by name, whatever a build of it has: naming one of these gives a warning, any other name an error.
_NAMES = "Tensorrt CUDA MIGraphX OpenVINO Dnnl VitisAI QNN Nnapi VSINPU Js CoreML Dml Rknpu WebNN WebGpu Xnnpack CANN Azure CPU"
_ALL = tuple(f"{name}ExecutionProvider" for name in _NAMES.split())
# Older names of the same, which packages still list.
_KNOWN = frozenset((*_ALL, "ROCMExecutionProvider", "NvTensorRTRTXExecutionProvider", "NvTensorRtRtxExecutionProvider"))
# Options of the processor's provider, all about memory that is not managed that way here.
_CPU_OPTIONS = frozenset({"arena_extend_strategy", "use_arena"})


def get_all_providers() -> list[str]:
    """Every provider that onnxruntime knows of."""
    return list(_ALL)


def get_available_providers() -> list[str]:
    """Those that can be had here: the processor's."""
    return [CPU]


def check_and_normalize_provider_args(
    providers: Sequence[str | tuple[str, dict[Any, Any]]] | None,
    provider_options: Sequence[dict[Any, Any]] | None,
    available_provider_names: Sequence[str],
) -> tuple[list[str], list[dict[str, str]]]:
    """Names and options of the providers that a caller asks for, by onnxruntime's rules and with its warnings.

    Args:
        providers: names, or tuples of a name and a dict of options; None for the default.
        provider_options: a dict of options for each name.
        available_provider_names: what there is; what is not among it is warned of.

    Returns:
        The names, each once, and their options as strings.

    Raises:
        ArgumentError: they are no such lists, or of different lengths.
        DTypeError: `providers` is no sequence.
    """
    if providers is None:
        return [], []
    if isinstance(providers, str):
        raise ArgumentError(f"'providers' should be a sequence of names: got the str {shown(providers)}")
    if not isinstance(providers, Sequence):
        raise DTypeError(f"'providers' should be a sequence: got {shown(providers)}")
    pairs = list(map(_pair, providers)) if provider_options is None else _zipped(providers, provider_options)
    found: dict[str, dict[str, str]] = {}
    for name, options in pairs:
        if name not in available_provider_names:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names."
                f"Available providers: '{', '.join(available_provider_names)}'",
                stacklevel=4,
            )
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
            continue
        found[name] = {str(key): str(value) for key, value in options.items()}
    return list(found), list(found.values())


def _pair(provider: Any) -> tuple[str, dict[Any, Any]]:
    if isinstance(provider, str):
        return provider, {}
    if isinstance(provider, tuple) and len(provider) == 2 and isinstance(provider[0], str) and isinstance(provider[1], dict):
        return provider
    raise ArgumentError("'providers' values must be either strings or (string, dict) tuples.")


def _zipped(providers: Sequence[Any], options: Any) -> list[tuple[str, dict[Any, Any]]]:
    if not isinstance(options, Sequence):
        raise ArgumentError("'provider_options' should be a sequence.")
    if len(providers) != len(options):
        raise ArgumentError("'providers' and 'provider_options' should be the same length if both are given.")
    if not all(isinstance(name, str) for name in providers):
        raise ArgumentError("Only string values for 'providers' are supported if 'provider_options' is given.")
    if not all(isinstance(given, dict) for given in options):
        raise ArgumentError("'provider_options' values must be dicts.")
    return list(zip(providers, options, strict=True))


def registered(names: Sequence[str], options: Sequence[dict[str, str]]) -> None:
    """Raises if a name is none that onnxruntime knows; says which options change nothing.

    Raises:
        OrtRuntimeError: there is no such provider.
    """
    for name, given in zip(names, options, strict=True):
        if name not in _KNOWN:
            raise OrtRuntimeError(f"Unknown Provider Type: {name}")
        if name == CPU and (others := sorted(set(given) - _CPU_OPTIONS)):
            warnings.warn(f"{CPU} has no options {others}: they change nothing", stacklevel=5)
