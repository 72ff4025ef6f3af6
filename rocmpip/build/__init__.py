"""One build: preflight, environment, overlay, compile, examination of the result."""

from rocmpip.build.engine import build, verdict
from rocmpip.build.environment import build_environment as compose_environment
from rocmpip.build.environment import config_settings, users_own
from rocmpip.build.git import fetch_git, git_digest
from rocmpip.build.job import BuildJob, BuiltWheel, Progress
from rocmpip.build.sources import source_digest
from rocmpip.build.surroundings import compiler_identity, look_around

__all__ = [
    "BuildJob",
    "BuiltWheel",
    "Progress",
    "build",
    "compiler_identity",
    "compose_environment",
    "config_settings",
    "fetch_git",
    "git_digest",
    "look_around",
    "source_digest",
    "users_own",
    "verdict",
]
