"""The command line: main.py reads the arguments, each module in commands/ is a command, and the rest is shared."""
