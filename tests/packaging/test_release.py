"""The version that is told in several places, and what keeps a release from being tagged."""

from __future__ import annotations

import pytest

import fastlayers as fl
from tests.packaging.release import CHANGELOG, newest, problems

DATED = "# Changelog\n\n## [1.2.3] - 2027-01-02\n\n### Added\n"


def test_the_changelog_tells_the_package_s_version():
    assert newest(CHANGELOG.read_text())[0] == fl.__version__


def test_a_clean_main_with_a_dated_section_is_tagged():
    assert problems("1.2.3", DATED, "main", "") == []


@pytest.mark.parametrize(
    ("version", "changelog", "branch", "changed", "said"),
    [
        ("1.2.4", DATED, "main", "", "first version is 1.2.3, the package's is 1.2.4"),
        ("1.2.3", "## [1.2.3]\n", "main", "", "no date"),
        ("1.2.3", "## [Unreleased]\n\nThe next version, 1.2.3.\n", "main", "", "no date"),
        ("1.2.3", DATED, "work", "", "not main"),
        ("1.2.3", DATED, "main", " M setup.py", "not committed"),
    ],
)
def test_what_keeps_a_release_back_is_said(version, changelog, branch, changed, said):
    assert any(said in text for text in problems(version, changelog, branch, changed))
