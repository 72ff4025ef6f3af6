"""The user's exported variables and ``-C`` against a recipe's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rocmpip.model.recipe import ResolvedRecipe, Value


def apply_user(
    resolved: ResolvedRecipe, env: Mapping[str, str], config_settings: Sequence[str]
) -> tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]:
    """The user's word wins, except over values marked ``force``.

    ``env`` is the user's environment, ``config_settings`` their ``KEY=VALUE`` texts. Returns the variables to set on top of
    that environment, the config settings to hand to the build, and a note for every value where the two differed.
    An exported empty variable does not win: an empty list of targets would build nothing.
    """
    notes: list[str] = []
    variables = {}
    for value in resolved.env:
        theirs = env.get(value.key, "")
        variables[value.key] = value.value
        if theirs and theirs != value.value:
            variables[value.key] = value.value if value.force else theirs
            notes.append(_told(value, f"your {value.key}={theirs}", f"{value.key}={value.value}"))
    theirs_by_key: dict[str, list[str]] = {}
    for text in config_settings:
        key, _, setting = text.partition("=")
        theirs_by_key.setdefault(key, []).append(setting)
    ours_by_key: dict[str, list[Value]] = {}
    for value in resolved.config_settings:
        ours_by_key.setdefault(value.key, []).append(value)
    settings = []
    for key, values in ours_by_key.items():
        words = [value.value for value in values]
        given = theirs_by_key.get(key)
        forced = any(value.force for value in values)
        if given is not None and given != words:
            notes.append(_told(values[0], f"your -C {key}={' '.join(given)}", f"{key}={' '.join(words)}", force=forced))
        settings += [f"{key}={word}" for word in (words if forced or given is None else given)]
    for key, given in theirs_by_key.items():
        if key not in ours_by_key:
            settings += [f"{key}={word}" for word in given]
    return variables, tuple(settings), tuple(notes)


def _told(value: Value, theirs: str, ours: str, *, force: bool | None = None) -> str:
    if value.force if force is None else force:
        reason = f" ({value.note})" if value.note else ""
        return f"{theirs} is not used: {value.clause} holds {ours}{reason}"
    return f"{theirs} is used instead of {ours} ({value.clause})"
