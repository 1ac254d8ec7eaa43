"""The price book: its rows, the user's own rows, which of them count on a given day, and checks of their quality."""
