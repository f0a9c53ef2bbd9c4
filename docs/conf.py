"""The documentation as a site: ``make site`` builds it (docs/design.md, "The site")."""

project = "agelab"
author = "the authors of agelab"
html_title = "agelab"
extensions = ["myst_parser"]
exclude_patterns = ["_static"]
root_doc = "index"
# Anchors as GitHub makes them of headings, so that one link works on both.
myst_heading_anchors = 4
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["agelab.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
# What is shown of a terminal or of a file in no language is no program.
highlight_language = "none"
# Two hyphens are two hyphens: an option's.
smartquotes = False
