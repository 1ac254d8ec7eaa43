"""The frameworks of `mpplan export --launch`: their settings, checks of our files, and the documentation page."""
