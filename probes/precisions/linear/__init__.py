"""Linear layers in low precision: the products, their scales and their backward pass."""
