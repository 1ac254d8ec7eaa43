"""The frameworks of `mpplan export --launch`: what they take, whether they take our files, and the page about them."""
