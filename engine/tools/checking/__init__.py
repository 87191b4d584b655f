"""The rules of tool templates, one concern each; `engine.tools.rules` puts them together."""
