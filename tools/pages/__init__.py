"""Pages of the documentation that hold what commands print: `python -m tools.pages` writes them anew."""
