"""How Sphinx builds these pages; `make docs` and `make pages` run it with warnings as errors."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import matplotlib

import localparity

matplotlib.use("Agg")
warnings.filterwarnings("error", module="localparity")

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).with_name("_extensions")))
from members import own_members  # noqa: E402

project = "localparity"
author = "The localparity authors"
copyright = author
version = release = localparity.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "commands",
    "curves",
    "example_page",
    "faithful",
    "mathml",
    "reproduced",
    "results",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "literal"
smartquotes_action = "qe"  # the two dashes of an option stay two
suppress_warnings = ["config.cache"]  # templates get a function

# `make pages` checks the pages without running the gallery, whose figures are then missing from them.
plot_gallery = "True"
if tags.has("pages_only"):  # noqa: F821, Sphinx defines it
    plot_gallery = "False"
    suppress_warnings.append("image.not_readable")

autosummary_generate = True
autosummary_context = {"own_members": own_members}
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("matplotlib", "gallery_style.apply"),
    "min_reported_time": 5,
}

html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_title = "localparity"
html_static_path = ["_static"]
html_css_files = ["localparity.css"]
html_js_files = ["copy.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
}
