"""How a model is trained: precision, optimizer, method and framework."""
