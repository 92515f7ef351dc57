"""The commands, each a module: its docstring is its help, OPTIONS are its options, run(options, report) runs it."""
