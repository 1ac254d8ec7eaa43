"""Vision models: their operations from timm, and the terms that timed training steps are fitted to."""
