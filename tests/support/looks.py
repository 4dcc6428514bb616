"""The looks in which a page has to be accessible: options of the browser, and the colour of the paper."""

from __future__ import annotations

import pytest

WHITE, BLACK = "rgb(255, 255, 255)", "rgb(20, 23, 27)"
LOOKS = (
    pytest.param("light", {"color_scheme": "light"}, WHITE, id="light"),
    pytest.param("dark", {"color_scheme": "dark"}, BLACK, id="dark"),
    pytest.param(
        "narrow", {"viewport": {"width": 360, "height": 740}}, WHITE, id="narrow", marks=pytest.mark.slow
    ),
    pytest.param("print", {"color_scheme": "dark"}, WHITE, id="print", marks=pytest.mark.slow),
)
