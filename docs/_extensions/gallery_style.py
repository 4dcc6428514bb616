"""The style of the gallery's figures, which is that of the displays."""

from __future__ import annotations

from typing import Any

from localparity.report.displays._base import use_style


def apply(gallery_conf: dict[str, Any], file: str) -> None:
    """Set the style before each example; sphinx-gallery's own reset comes first."""
    use_style()
