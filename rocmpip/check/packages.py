"""The command that installs system packages on this distribution."""

from __future__ import annotations

_TOOLS = {"fedora": "dnf", "rhel": "dnf", "centos": "dnf", "suse": "zypper", "sles": "zypper", "arch": "pacman"}
"""os-release's ID or ID_LIKE → the package tool."""
_INSTALL = {
    "apt": "apt-get install -y",
    "dnf": "dnf install -y",
    "zypper": "zypper install -y",
    "pacman": "pacman -S --noconfirm",
}


def package_tool(os_release: str) -> str:
    """apt, dnf, zypper or pacman by the text of /etc/os-release; apt when it does not tell."""
    fields = dict(line.partition("=")[::2] for line in os_release.splitlines() if "=" in line)
    words = {fields.get("ID", "").strip('"'), *fields.get("ID_LIKE", "").strip('"').split()}
    return next((tool for name, tool in _TOOLS.items() if name in words), "apt")


def install_command(tool: str, names: str) -> str:
    """``names`` as ``tool`` calls them → the command."""
    return f"{_INSTALL[tool]} {names}"
