# SPDX-License-Identifier: GPL-2.0
"""Sphinx: make docs."""

project = "ib_cm in Rust"
author = "The ib_cm developers"
copyright = author  # pylint: disable=redefined-builtin
extensions = []
exclude_patterns = ["conf.py"]
html_theme = "alabaster"
html_show_sphinx = False
html_copy_source = False
# What stands between double backquotes is literal, and single ones are not used.
default_role = None
nitpicky = True
