"""Documentation pages that contain the output of commands: `python -m tools.pages` writes them again."""
