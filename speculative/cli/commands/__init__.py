"""The commands, each a module: its docstring is its help, OPTIONS what it takes, run(options, report) what it does."""
