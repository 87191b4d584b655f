"""The kinds of tool, behind one ToolService protocol (TOOLS.md)."""
