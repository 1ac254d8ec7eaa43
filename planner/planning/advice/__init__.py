"""What a reader should know before deciding: risks, costs that are avoidable, and settings that end sooner."""
