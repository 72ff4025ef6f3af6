"""The machine: what is seen of it (``probe``) and what that means (``judge``). A door; ``judge`` itself is pure."""
