"""Sphinx configuration: `make docs`."""

from opsieve import __version__

project = "opsieve"
author = "The opsieve authors"
copyright = author
release = __version__

extensions = ["myst_parser"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"opsieve {release}"
exclude_patterns = ["_build"]
