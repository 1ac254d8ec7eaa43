"""Times of training steps over several ranks, predicted from measurements on several ranks."""
