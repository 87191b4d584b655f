"""The demo: a bank's agent with its tools and a small data set of its own. Nothing outside of this folder knows it."""
