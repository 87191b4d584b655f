"""Reading and writing packages of tools: paths, ZIPs, the layout of workflow templates."""
