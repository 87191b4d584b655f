"""Building the environments of uploaded tools; `engine.tools.environment` is the way in."""
