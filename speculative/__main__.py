"""`python -m speculative`: the command line, see cli/main.py."""

if __name__ == "__main__":
    from .cli.main import run

    run()
