"""Use of training results about precisions in plans: parity beside savings, and mixtures of two plans."""
