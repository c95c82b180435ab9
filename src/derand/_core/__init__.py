"""What all rooms share and what knows none of them: arrays, files, threads, text."""
