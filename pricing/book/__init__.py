"""The price book: its rows, the user's own rows, the choice of rows that count on a day, and quality checks."""
