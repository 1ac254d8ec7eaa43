"""The price book: its rows, the user's own rows, the selection of rows that count on a given day, and quality
checks.
"""
