"""Autoregressive and speculative generation compared: the same target model, without and with a draft.

    python main.py                                  the bundled pair, no download
    python main.py --draft_model_size 124M --target_model_size 355M --K 4
    python main.py --help                           the options, and the other commands

The same as `python -m speculative`, and as `speculative-decoding` if the project is installed; see speculative/cli.
"""

import signal
import sys

if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else Ctrl-C is ignored, in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # half a second of imports, with nothing to lose: end at once
    try:
        from speculative.cli.main import run
    except ModuleNotFoundError as error:
        sys.exit(f"{error.name} is not installed: run `python -m pip install -e .` in the folder of main.py first")

    run()
