"""What a plan does with what training showed of precisions: parity beside savings, and mixtures of two plans."""
