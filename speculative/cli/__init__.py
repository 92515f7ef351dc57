"""The command line: main.py reads the arguments, each module in commands/ is a command, and the rest is shared.

To follow one command, `main.py --K 4`, read in this order:

    main.py       from words to a command and an exit code
    options.py    an option is a field; words.py: from words to Options; values.py: from a text to a value
    settings.py   what goes together, and what has no effect
    models.py     a name becomes a model; drafters.py: the drafters and rules that have names; samplers.py: one setting
    commands/generate.py, and experiments.py: the texts are generated and measured (speculative/measuring)
    journal.py    the parts of a long run, in a file

The others serve one option or one command: brought.py, engines.py, prompts.py, texts.py, files.py, help.py, server.py.
"""
