"""Language models behind one ChatModel protocol (DESIGN.md §6)."""
