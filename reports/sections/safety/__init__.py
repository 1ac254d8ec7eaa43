"""Safety of the precisions: the known effects of lower precisions on the loss, and the results of training in them."""
