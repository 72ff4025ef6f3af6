"""Ask a person at the terminal, as pip does."""

from __future__ import annotations

import sys
import threading

_one_at_a_time = threading.Lock()


def credentials(authority: str) -> tuple[str, str] | None:
    """User and password for a server, in pip's words; None without a terminal, and when nothing is entered.

    May be called from any thread: questions come one after the other. What Ctrl-C interrupts leaves the terminal as it was.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    import atexit
    import termios
    from getpass import getpass

    with _one_at_a_time:
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)

        def restore() -> None:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)

        # A thread that waits for an answer is not unwound when the main one is interrupted.
        atexit.register(restore)
        try:
            user = input(f"User for {authority}: ")
            if not user:
                return None
            return user, getpass("Password: ")
        except EOFError:
            return None
        finally:
            restore()
            atexit.unregister(restore)
