"""What runs a tool, apart from everything else (TOOLS.md §2): it needs a Python 3.11 or newer on Linux, and no package.

`python -I -S -B <this directory>` is the host of one tool. It imports what most tools need, and waits. For each call it
forks a supervisor, which forks the tool, watches it, and leaves no process of it behind. `engine.tools.runner` is the
other side. Nothing here imports the rest of the engine: it is not there, where the tool runs.
"""
