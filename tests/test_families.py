"""A family of operations has one name on every storey: files are as docs/explanation/architecture.md lists them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
STOREYS = ("kernels/reference", "calls", "functional", "layers", "operators", "passes")
ALL = "*all*"


def table() -> dict[str, dict[str, list[str]]]:
    """The files of each family on each storey, as the page says."""
    lines = PAGE.read_text(encoding="utf-8").partition("## Families")[2].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert [re.sub("`", "", cell) for cell in rows[0]] == ["family", *STOREYS]
    return {
        family: {storey: re.findall(r"`([\w/]+)`", cell) for storey, cell in zip(STOREYS, cells, strict=True)}
        for family, *cells in rows[2:]
    }


def files(storey: str) -> list[str]:
    """The modules of a storey that are not private; all of `functional` have an underscore, as users see its functions alone."""
    folder = ROOT / "fastlayers" / storey
    names = (path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.py"))
    if storey == "functional":
        return sorted(name.removeprefix("_") for name in names if not name.startswith("__"))
    return sorted(name for name in names if not any(part.startswith("_") for part in name.split("/")))


def test_every_file_is_of_one_family() -> None:
    listed = {storey: sorted(name for row in table().values() for name in row[storey]) for storey in STOREYS}
    assert listed == {storey: files(storey) for storey in STOREYS}


def strangers(rows: dict[str, dict[str, list[str]]]) -> list[str]:
    """Files above the kernels that are not named after their family, and such as are named after another one as well."""
    wrong = []
    for family, row in rows.items():
        for storey in STOREYS[1:]:
            for name in row[storey]:
                of = [f for f in rows if re.fullmatch(rf"{re.escape(f)}(?:[_/].+)?", name)]
                if family != ALL and family not in of:
                    wrong.append(f"{storey}/{name} is of {family}")
                if family == ALL and of:
                    wrong.append(f"{storey}/{name} is of {of[0]} by its name")
    return wrong


def test_files_are_named_after_their_family() -> None:
    assert strangers(table()) == []
    assert strangers({"conv": {storey: ["normal"] for storey in STOREYS[1:]}}) == [f"{s}/normal is of conv" for s in STOREYS[1:]]


def test_families_are_in_alphabetical_order() -> None:
    names = [name for name in table() if name != ALL]
    assert names == sorted(names)
