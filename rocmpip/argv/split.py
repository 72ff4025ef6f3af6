"""Split a command line at the sub-command, as pip's main parser does.

Standard library at its lightest: every plain pip call pays for what is imported here.
"""

from __future__ import annotations

VALUED = (
    "--cache-dir",
    "--cert",
    "--client-cert",
    "--default-timeout",
    "--exists-action",
    "--keyring-provider",
    "--local-log",
    "--log",
    "--log-file",
    "--proxy",
    "--python",
    "--resume-retries",
    "--retries",
    "--timeout",
    "--trusted-host",
    "--use-deprecated",
    "--use-feature",
)
"""pip's general options that take a value, of all versions from 22.3 to 26.3."""

FLAGS = (
    "--debug",
    "--disable-pip-version-check",
    "--help",
    "--isolated",
    "--no-cache-dir",
    "--no-color",
    "--no-input",
    "--no-proxy-env",
    "--no-python-version-warning",
    "--quiet",
    "--require-venv",
    "--require-virtualenv",
    "--verbose",
    "--version",
)
SHORTS = {"-h": "--help", "-V": "--version", "-v": "--verbose", "-q": "--quiet"}
OURS_VALUED = ("--channel", "--gfx", "--rocm")
OURS_FLAGS = ("--json",)


class Command:
    """A command line split at its sub-command.

    ``global_args``: pip's options before the sub-command, as written, without ``--python``.
    ``name``: the sub-command as written, "" when there is none.
    ``args``: everything after it.
    ``python``: the value of ``--python`` before the sub-command, or "".
    ``ours``: our own options before the sub-command (``--json``, ``--gfx X`` …), as words.
    ``help``, ``version``: whether -h/--help or -V/--version stood before the sub-command.
    ``problem``: why pip's main parser refuses the options before the sub-command, or "". An option that is not known counts
    as one without a value, so that the sub-command is found all the same.
    """

    __slots__ = ("args", "global_args", "help", "name", "ours", "problem", "python", "version")

    def __init__(self) -> None:
        self.global_args: list[str] = []
        self.name = ""
        self.args: list[str] = []
        self.python = ""
        self.ours: list[str] = []
        self.help = False
        self.version = False
        self.problem = ""

    @property
    def words(self) -> list[str]:
        """The arguments of the sub-command as pip itself would hand them to it: general options first."""
        return [*self.global_args, *self.args]


def long_option(word: str) -> str:
    """The general option that ``word`` (without ``=value``) names, abbreviations included; "" for none or several."""
    if word in VALUED or word in FLAGS:
        return word
    if len(word) < 3:
        return ""
    found = [name for name in VALUED + FLAGS if name.startswith(word)]
    return found[0] if len(found) == 1 else ""


def split_command(argv: list[str] | tuple[str, ...]) -> Command:
    """Split ``argv`` (without the program's name). Never raises: what pip would refuse is told by ``problem``."""
    command = Command()
    words = list(argv)
    while words:
        word = words[0]
        if word == "--":
            command.global_args.append(words.pop(0))
            break
        if word == "-" or not word.startswith("-"):
            break
        words.pop(0)
        if word.startswith("--"):
            _long(command, word, words)
        else:
            _cluster(command, word, words)
    if words:
        command.name = words.pop(0)
    command.args = words
    return command


def _refuse(command: Command, problem: str) -> None:
    """Keep the first problem: pip stops there."""
    command.problem = command.problem or problem


def _long(command: Command, word: str, words: list[str]) -> None:
    spelled, equals, value = word.partition("=")
    if spelled in OURS_FLAGS and not equals:
        command.ours.append(word)
        return
    if spelled in OURS_VALUED:
        command.ours.append(word)
        if not equals:
            if not words:
                _refuse(command, f"{spelled} option requires 1 argument")
                return
            command.ours.append(words.pop(0))
        return
    name = long_option(spelled)
    if not name:
        _refuse(command, f"no such option: {spelled}")
        command.global_args.append(word)
        return
    taken = [word]
    if name in VALUED and not equals:
        if not words:
            _refuse(command, f"{name} option requires 1 argument")
            command.global_args.append(word)
            return
        value = words.pop(0)
        taken.append(value)
    if name == "--python":
        command.python = value
        return
    if name in FLAGS and equals:
        _refuse(command, f"{name} option does not take a value")
    command.help = command.help or name == "--help"
    command.version = command.version or name == "--version"
    command.global_args.extend(taken)


def _cluster(command: Command, word: str, words: list[str]) -> None:
    """A cluster of short options, none of which takes a value before the sub-command."""
    command.global_args.append(word)
    for letter in word[1:]:
        name = SHORTS.get("-" + letter)
        if name is None:
            _refuse(command, f"no such option: -{letter}")
            return
        command.help = command.help or name == "--help"
        command.version = command.version or name == "--version"
