"""What weights lose on rows that are changed as badly as can be, and the slopes by the weights."""
