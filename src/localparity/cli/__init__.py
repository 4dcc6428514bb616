"""The command `localparity`: each command is a thin call into the library."""

from localparity.cli._app import main

__all__ = ["main"]
