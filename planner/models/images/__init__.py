"""Vision models: convolutional networks and vision transformers, as the operations of a training step."""
