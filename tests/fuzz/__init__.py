"""What mpplan is attacked with."""
