"""A start of the server: one process, or several."""

from __future__ import annotations

from . import logs
from .server import bound, work
from .settings import Settings

__all__ = ["run"]


def run(settings: Settings) -> int:
    """Serves until a signal; see `fastlayers.serve.serve`."""
    listening = bound(settings.host, settings.port)
    try:
        host, port = listening.getsockname()[:2]
        if settings.workers > 1:
            from .workers import run_workers

            return run_workers(settings, listening, f"http://{_written(host)}:{port}")
        from .repository import Repository

        repository = Repository(settings)
        repository.load_all()
        logs.serving(f"http://{_written(host)}:{port}", [s.name for s in repository.every()], settings.page)
        return work(settings, repository, [listening])
    finally:
        listening.close()


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host
