"""`fastlayers serve`: models over HTTP, by the Open Inference Protocol version 2, and text models by OpenAI's. Needs the extra
``serve``.

From the socket inwards: ``connections`` bounds what one connection may cost, below ASGI; ``app`` finds what a path means;
``body`` reads within limits; ``wire`` turns bytes into arrays and back (``datatypes``: one tensor); ``inference`` is the way of
one request; ``scheduler`` decides what runs when, and which requests run as one batch; ``served`` is one version of a model,
``sequences`` its streams, ``repository`` the folder that models come from (``config``: what stands next to them). ``openai``
has the paths of text models and ``completions`` those of text that follows; ``fields`` reads their JSON, ``texts`` asks the
models. ``metrics`` counts, ``logs`` writes lines, ``page`` shows. ``server`` starts and stops one process, ``workers``
several, which ``shared`` ties together.
"""

from __future__ import annotations

from .settings import Settings

__all__ = ["Settings", "serve"]


def serve(settings: Settings) -> int:
    """Serves until SIGTERM or SIGINT; the process's exit code.

    Raises:
        MissingExtraError: a package of the extra ``serve`` is not installed.
        ArgumentError: a setting is out of range.
        FormatError, UnsupportedError: the one model that was named cannot be served.
        OSError: nothing can be read at the path, or the address is taken.
    """
    from ._needed import check

    check()
    from .run import run

    return run(settings)
