"""fpinq completion bash | zsh | fish: what a shell needs to complete commands, read off the parser.

bash:  source <(fpinq completion bash)
zsh:   source <(fpinq completion zsh)
fish:  fpinq completion fish | source
"""

from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Iterator
from shlex import quote

from fpinq.cli.output import tell


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq completion`."""
    parser.add_argument("shell", choices=_SHELLS)


def run(arguments: Namespace) -> int:
    """Print the shell's own program."""
    from fpinq.cli.main import parser

    tell(_SHELLS[arguments.shell](dict(words_after(parser(), ()))))
    return 0


Words = dict[tuple[str, ...], list[str]]


def words_after(parser: ArgumentParser, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """What may come after each command: its own commands, its choices and its long options."""
    words: list[str] = []
    below: dict[str, ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            below |= action.choices
        elif action.option_strings:
            words += [option for option in action.option_strings if option.startswith("--")]
        elif action.choices is not None:
            words += [str(choice) for choice in action.choices]
    yield path, [*below, *words]
    for name, command in below.items():
        yield from words_after(command, (*path, name))


def _bash(words: Words) -> str:
    cases = "\n".join(
        f"    {quote(' '.join(path))}) words={quote(' '.join(after))} ;;" for path, after in words.items()
    )
    known = " ".join(quote(" ".join(path)) for path in words if path)
    return f"""_fpinq() {{
  local path="" word words="" known
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    for known in {known}; do
      if [ "${{path:+$path }}$word" = "$known" ]; then path="$known"; break; fi
    done
  done
  case "$path" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
  if [ ${{#COMPREPLY[@]}} -eq 0 ]; then COMPREPLY=($(compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}")); fi
}}
complete -o filenames -F _fpinq fpinq"""


def _zsh(words: Words) -> str:
    return f"autoload -Uz bashcompinit && bashcompinit\n{_bash(words)}"


def _fish(words: Words) -> str:
    lines = []
    for path, after in words.items():
        seen = " ".join(quote(word) for word in path)
        test = f"__fish_seen_subcommand_from {seen}" if path else "__fish_use_subcommand"
        for word in after:
            what = f"-l {quote(word[2:])}" if word.startswith("--") else f"-f -a {quote(word)}"
            lines.append(f"complete -c fpinq -n {quote(test)} {what}")
    return "\n".join(lines)


_SHELLS: dict[str, Callable[[Words], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
