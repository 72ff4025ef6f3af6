"""pip's options for the commands that rocmpip stands in for, from pip 22.3 to 26.3.

Facts read from ``pip COMMAND --help`` and the option objects of pip 22.3.1, 23.0.1, 23.3.2, 24.0, 24.3.1, 25.0.1, 25.1.1,
25.3, 26.0, 26.1, 26.2 and 26.3. ``since`` is the first version with the option, ``until`` the first without it.
"""

from __future__ import annotations

from functools import lru_cache

from rocmpip.model.record import Struct

NEWEST = (26, 3)
"""The newest pip that this table describes; later ones are taken to be like it."""

Version = tuple[int, ...]


class Option(Struct, frozen=True):
    """One option. ``action`` is optparse's: store, flag (store_true), off (store_false), count, append, or collect
    (a callback with a value), nocache (the callback of --no-cache-dir)."""

    dest: str
    action: str
    longs: tuple[str, ...]
    shorts: tuple[str, ...] = ()
    on: str = "idwl"
    """Which commands: i(nstall) d(ownload) w(heel) l(ock), g for the general options of all commands."""
    kind: str = "text"
    """text, path (``~`` is expanded), int, float."""
    since: Version = (0,)
    until: Version = (999,)

    @property
    def takes_value(self) -> bool:
        return self.action in ("store", "append", "collect")

    @property
    def name(self) -> str:
        """The spelling to hand on: the first long one."""
        return self.longs[0]


def _option(names: str, dest: str, action: str = "flag", **rest: object) -> Option:
    words = names.split()
    longs = tuple(word for word in words if word.startswith("--"))
    shorts = tuple(word for word in words if not word.startswith("--"))
    return Option(dest, action, longs, shorts, **rest)  # type: ignore[arg-type]


GENERAL: tuple[Option, ...] = (
    _option("-V --version", "version", on="g", until=(26, 3)),
    _option("-h --help", "help", on="g"),
    _option("--debug", "debug", on="g"),
    _option("--isolated", "isolated", on="g"),
    _option("--require-virtualenv --require-venv", "require_venv", on="g"),
    _option("--python", "python", "store", on="g"),
    _option("-v --verbose", "verbose", "count", on="g"),
    _option("-q --quiet", "quiet", "count", on="g"),
    _option("--log --log-file --local-log", "log", "store", kind="path", on="g"),
    _option("--no-input", "no_input", on="g"),
    _option("--keyring-provider", "keyring_provider", "store", on="g", since=(23, 1)),
    _option("--proxy", "proxy", "store", on="g"),
    _option("--no-proxy-env", "no_proxy_env", on="g", since=(26, 2)),
    _option("--retries", "retries", "store", kind="int", on="g"),
    _option("--resume-retries", "resume_retries", "store", kind="int", on="g", since=(25, 1)),
    _option("--timeout --default-timeout", "timeout", "store", kind="float", on="g"),
    _option("--exists-action", "exists_action", "append", on="g"),
    _option("--trusted-host", "trusted_hosts", "append", on="g"),
    _option("--cert", "cert", "store", kind="path", on="g"),
    _option("--client-cert", "client_cert", "store", kind="path", on="g"),
    _option("--cache-dir", "cache_dir", "store", kind="path", on="g"),
    _option("--no-cache-dir", "no_cache_dir", "nocache", on="g"),
    _option("--disable-pip-version-check", "disable_pip_version_check", on="g"),
    _option("--no-color", "no_color", on="g"),
    _option("--no-python-version-warning", "no_python_version_warning", on="g"),
    _option("--use-feature", "use_feature", "append", on="g"),
    _option("--use-deprecated", "use_deprecated", "append", on="g"),
)

COMMAND: tuple[Option, ...] = (
    _option("-r --requirement", "requirements", "append"),
    _option("-c --constraint", "constraints", "append"),
    _option("--build-constraint", "build_constraints", "append", since=(25, 3)),
    _option("--requirements-from-script", "scripts", "append", since=(26, 0)),
    _option("--group", "groups", "collect", since=(25, 1)),
    _option("-e --editable", "editables", "append", on="iwl"),
    _option("--no-deps --no-dependencies", "no_deps"),
    _option("--only-deps --only-dependencies", "only_deps", since=(26, 2)),
    _option("--dry-run", "dry_run", on="i"),
    _option("-t --target", "target", "store", on="i"),
    _option("--platform", "platforms", "append", on="id"),
    _option("--python-version", "python_version", "store", on="id"),
    _option("--implementation", "implementation", "store", on="id"),
    _option("--abi", "abis", "append", on="id"),
    _option("--user", "user", on="i"),
    _option("--no-user", "user", "off", on="i"),
    _option("--root", "root", "store", on="i"),
    _option("--prefix", "prefix", "store", on="i"),
    _option("--src --source --source-dir --source-directory", "src", "store", kind="path"),
    _option("-U --upgrade", "upgrade", on="i"),
    _option("--upgrade-strategy", "upgrade_strategy", "store", on="i"),
    _option("--force-reinstall", "force_reinstall", on="i"),
    _option("-I --ignore-installed", "ignore_installed", on="i"),
    _option("--ignore-requires-python", "ignore_requires_python"),
    _option("--no-build-isolation", "build_isolation", "off"),
    _option("--use-pep517", "use_pep517"),
    _option("--no-use-pep517", "use_pep517", "off", until=(25, 3)),
    _option("--check-build-dependencies", "check_build_dependencies"),
    _option("--break-system-packages", "break_system_packages", on="i", since=(23, 0)),
    _option("-C --config-settings", "config_settings", "collect", on="iwl", since=(23, 1)),
    _option("--config-settings", "config_settings", "collect", on="iw", until=(23, 1)),
    _option("--install-option", "install_options", "append", on="i", until=(23, 1)),
    _option("--global-option", "global_options", "append", on="idw", until=(25, 3)),
    _option("--build-option", "build_options", "append", on="w", until=(25, 3)),
    _option("--compile", "compile", on="i"),
    _option("--no-compile", "compile", "off", on="i"),
    _option("--no-warn-script-location", "warn_script_location", "off", on="i"),
    _option("--no-warn-conflicts", "warn_conflicts", "off", on="i"),
    _option("--require-hashes", "require_hashes"),
    _option("--no-require-hashes", "no_require_hashes", since=(26, 2)),
    _option("--progress-bar", "progress_bar", "store"),
    _option("--root-user-action", "root_user_action", "store", on="i"),
    _option("--report", "report", "store", on="i"),
    _option("--no-clean", "no_clean"),
    _option("--no-verify", "no_verify", on="w"),
    _option("-w --wheel-dir", "wheel_dir", "store", on="w"),
    _option("-d --dest --destination-dir --destination-directory", "dest", "store", on="d"),
    _option("-o --output", "output", "store", kind="path", on="l"),
    _option("--pre", "pre"),
    _option("--all-releases", "all_releases", "collect", since=(26, 0)),
    _option("--only-final", "only_final", "collect", since=(26, 0)),
    _option("--no-binary", "no_binary", "collect"),
    _option("--only-binary", "only_binary", "collect"),
    _option("--prefer-binary", "prefer_binary"),
    _option("-i --index-url --pypi-url", "index_url", "store"),
    _option("--extra-index-url", "extra_index_urls", "append"),
    _option("--no-index", "no_index"),
    _option("-f --find-links", "find_links", "append"),
    _option("--refresh-package", "refresh_package", "collect", since=(26, 2)),
    _option("--uploaded-prior-to", "uploaded_prior_to", "store", since=(26, 0)),
)

FILE: tuple[Option, ...] = (
    _option("-i --index-url --pypi-url", "index_url", "store"),
    _option("--extra-index-url", "extra_index_urls", "append"),
    _option("--no-index", "no_index"),
    _option("-c --constraint", "constraints", "append"),
    _option("-r --requirement", "requirements", "append"),
    _option("-e --editable", "editables", "append"),
    _option("-f --find-links", "find_links", "append"),
    _option("--no-binary", "no_binary", "collect"),
    _option("--only-binary", "only_binary", "collect"),
    _option("--prefer-binary", "prefer_binary"),
    _option("--require-hashes", "require_hashes"),
    _option("--no-require-hashes", "no_require_hashes", since=(26, 2)),
    _option("--pre", "pre"),
    _option("--all-releases", "all_releases", "collect", since=(26, 0)),
    _option("--only-final", "only_final", "collect", since=(26, 0)),
    _option("--trusted-host", "trusted_hosts", "append"),
    _option("--use-feature", "use_feature", "append"),
    # Of one requirement:
    _option("--hash", "hashes", "collect"),
    _option("--config-settings -C", "config_settings", "collect", since=(23, 1)),
    _option("--global-option", "global_options", "append", until=(25, 3)),
)
"""The options that may stand in a requirement file."""

OURS: tuple[Option, ...] = (
    _option("--gfx", "gfx", "append"),
    _option("--rocm", "rocm", "store"),
    _option("--channel", "channel", "store"),
    _option("--json", "json"),
    _option("--recipe", "recipe", "append"),
    _option("--jobs", "jobs", "store", kind="int"),
    _option("--keep-build", "keep_build"),
    _option("--only-ready", "only_ready"),
    _option("--rebuild", "rebuild", "append"),
    _option("--hsa-override", "hsa_override"),
    _option("--map-cuda-names", "map_cuda_names"),
)
"""Our own options beside pip's. They are matched in full only, so that no abbreviation of pip's changes its meaning."""


class Grammar(Struct, frozen=True):
    """The options of one command of one pip."""

    command: str
    longs: dict[str, Option]
    shorts: dict[str, Option]
    ours: dict[str, Option]


def _grammar(command: str, rows: tuple[Option, ...], version: Version, ours: tuple[Option, ...]) -> Grammar:
    valid = [row for row in rows if row.since <= version < row.until]
    return Grammar(
        command,
        {name: row for row in valid for name in row.longs},
        {name: row for row in valid for name in row.shorts},
        {name: row for row in ours for name in row.longs},
    )


@lru_cache(maxsize=32)
def command_grammar(command: str, version: Version = NEWEST, extra: tuple[Option, ...] = ()) -> Grammar:
    """pip's grammar of install, download, wheel or lock, with our own options and ``extra`` ones beside it."""
    letter = {"install": "i", "download": "d", "wheel": "w", "lock": "l"}[command]
    rows = tuple(row for row in COMMAND if letter in row.on) + GENERAL
    return _grammar(command, rows, version, OURS + extra)


@lru_cache(maxsize=8)
def file_grammar(version: Version = NEWEST) -> Grammar:
    """The grammar of the options in requirement files."""
    return _grammar("requirement file", FILE, version, ())
