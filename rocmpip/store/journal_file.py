"""Names of the journal in the state folder. Light: whether there is a journal is asked before every install."""

from __future__ import annotations

FILE, OLDER = "journal.jsonl", "journal.1.jsonl"
