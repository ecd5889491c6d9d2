"""``fastlayers completion``: a script that lets a shell complete commands and options."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

__all__ = ["run", "words"]

Words = dict[str, list[tuple[str, str]]]


def words(parser: argparse.ArgumentParser) -> Words:
    """The options of every command, with what is said of each; those of no command under an empty name."""
    found: Words = {"": _options(parser)}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                found[name] = _options(command)
    return found


def _options(parser: Any) -> list[tuple[str, str]]:
    return [
        (option, (action.help or "").partition(":")[0].partition(";")[0])
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--")
    ]


def run(parser: argparse.ArgumentParser, shell: str, out: TextIO) -> int:
    """Prints the script."""
    found = words(parser)
    out.write(_fish(found) if shell == "fish" else _bash(found, shell))
    return 0


def _bash(found: Words, shell: str) -> str:
    commands = " ".join(name for name in found if name)
    cases = "\n".join(
        f"    {name}) words='{' '.join(option for option, _ in options)}' ;;" for name, options in found.items() if name
    )
    first = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return f"""{first}_fastlayers() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{commands} {" ".join(option for option, _ in found[""])}' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
    *) words='' ;;
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _fastlayers fastlayers
"""


def _fish(found: Words) -> str:
    lines = []
    for name, options in found.items():
        if name:
            lines.append(f"complete -c fastlayers -n __fish_use_subcommand -a {name}")
        where = f"__fish_seen_subcommand_from {name}" if name else "__fish_use_subcommand"
        for option, about in options:
            plain = about.replace("\\", "").replace("'", "")
            lines.append(f"complete -c fastlayers -n '{where}' -l {option[2:]} -d '{plain}'")
    return "\n".join(lines) + "\n"
