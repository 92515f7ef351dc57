"""The command line: main.py reads the words, a module in commands/ is a command, the rest is what they share."""
