"""What the user states of their own: a vendor's quote, owned machines, and the lines beside the GPUs."""
