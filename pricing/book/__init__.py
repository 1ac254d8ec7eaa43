"""The price book: its rows, the user's own additions, which rows count on a day, and what is doubtful in them."""
