"""Vision models: their operations from timm, and the terms that are fitted to timed training steps."""
