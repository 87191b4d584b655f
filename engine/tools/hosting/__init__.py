"""Warm processes of uploaded tools and talking to them; `engine.tools.runner` is the way in."""
