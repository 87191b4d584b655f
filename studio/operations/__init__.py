"""Every write that is more than one row, and the background work beside the function that enqueues it."""
