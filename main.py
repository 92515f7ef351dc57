"""Ordinary against speculative generation: the same target model, without and with a draft.

    python main.py                                  the bundled pair, no download
    python main.py --draft_model_size 124M --target_model_size 355M --K 4
    python main.py --help                           all options and commands: command_line/help.py

The same as `speculative-decoding`, where the project is installed. Next: command_line/main.py
"""

import signal

if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as `run` has it, and in force while that is imported
    from command_line import run

    run()
