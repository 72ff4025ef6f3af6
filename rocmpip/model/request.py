"""What a person asked for, read from pip's argv, environment, configuration and requirement files together."""

from __future__ import annotations

from rocmpip.model.packages import RequirementLine
from rocmpip.model.record import Struct


class IndexOptions(Struct, frozen=True):
    """Where pip would look, from configuration, environment, argv and files merged as pip merges them.

    URLs here may hold credentials: they never go to a log, a lock, the journal or an error text
    (``rocmpip.model.redact`` strips them).
    """

    index_url: str = ""
    """"" means pip's public default; None of the extra ones is implied."""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    trusted_hosts: tuple[str, ...] = ()
    cert: str = ""
    client_cert: str = ""
    proxy: str = ""
    timeout: float = 15.0
    retries: int = 5
    keyring_provider: str = "auto"
    no_input: bool = False
    no_proxy_env: bool = False
    """--no-proxy-env: the proxy variables of the environment do not count."""
    refresh: tuple[str, ...] = ()
    """--refresh-package: normalised names, or ":all:", whose pages no cache may answer for without asking."""


class Request(Struct, frozen=True):
    """One install-like command."""

    command: str
    """install, download, wheel, lock."""
    requirements: tuple[RequirementLine, ...]
    constraints: tuple[RequirementLine, ...]
    index: IndexOptions
    argv: tuple[str, ...]
    """The user's arguments after the sub-command, untouched."""
    options: tuple[str, ...] = ()
    """pip options to hand on: without requirements, -r/-c files, index options, --python, --dry-run and ours."""
    pre: bool = False
    no_binary: tuple[str, ...] = ()
    """Normalised names, or ":all:"."""
    only_binary: tuple[str, ...] = ()
    prefer_binary: bool = False
    require_hashes: bool = False
    no_deps: bool = False
    upgrade: bool = False
    upgrade_strategy: str = "only-if-needed"
    force_reinstall: bool = False
    ignore_installed: bool = False
    ignore_requires_python: bool = False
    no_build_isolation: bool = False
    config_settings: tuple[str, ...] = ()
    build_constraints: tuple[RequirementLine, ...] = ()
    dry_run: bool = False
    report: str = ""
    quiet: int = 0
    verbose: int = 0
    target: str = ""
    prefix: str = ""
    root: str = ""
    user: bool = False
    isolated: bool = False
    cache_dir: str = ""
    no_cache: bool = False
    python: str = ""
    """--python, wherever it stood."""
    # Foreign targets (pip download --platform …): empty means the target environment's own.
    platforms: tuple[str, ...] = ()
    python_version: str = ""
    abis: tuple[str, ...] = ()
    implementation: str = ""
    files: tuple[str, ...] = ()
    """Every requirement and constraint file read (absolute path or URL), in reading order."""
    notes: tuple[str, ...] = ()
    given: bool = True
    """Whether any requirement, editable, file, group or script was named at all."""
    only_deps: bool = False
    """--only-deps: the requirements' dependencies without the requirements themselves."""
    all_releases: tuple[str, ...] = ()
    """Normalised names whose pre-releases are allowed, or ":all:" (``pre`` says the same as ":all:")."""
    only_final: tuple[str, ...] = ()
    uploaded_prior_to: str = ""
    output: str = ""
    """download's --dest, wheel's --wheel-dir, lock's --output; "" when not given."""
    requirement_files: tuple[str, ...] = ()
    """The files named by -r on the command line or in the configuration, as absolute paths or URLs."""
    constraint_files: tuple[str, ...] = ()
    build_constraint_files: tuple[str, ...] = ()
    pylocks: tuple[str, ...] = ()
    """PEP 751 lock files named by -r or --group: pip alone reads them."""
    places_in_files: bool = False
    """A requirement or constraint file has -i, --extra-index-url, -f or --no-index."""
