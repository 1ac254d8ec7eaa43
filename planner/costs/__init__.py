"""What is paid, and what is emitted?

The package holds unit prices as the pricing package supplies them, the lines of a bill, carbon by method, and the power
that a facility must deliver. Quantities carry their units as types.
"""
