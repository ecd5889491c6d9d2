"""ddddocr: letters of captchas, and where things are in a picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ..given import disc, page


def answers(folder: Path) -> Any:
    import ddddocr

    found: dict[str, Any] = {}
    for name, options in {"new": {}, "old": {"old": True}}.items():
        content = io.BytesIO()
        page("x7Kq", (140, 60), 40).save(content, "PNG")
        reader = ddddocr.DdddOcr(show_ad=False, **options)
        found[name] = reader.classification(content.getvalue())
        table = reader.classification(content.getvalue(), probability=True)
        found[f"{name}_table"] = {key: table[key] for key in ("text", "probabilities", "confidence")}
    content = io.BytesIO()
    disc().save(content, "PNG")
    found["places"] = ddddocr.DdddOcr(det=True, ocr=False, show_ad=False).detection(content.getvalue())
    return found
