"""Pages to explore in a browser, without a network: your own prompt with every decision, and p, q and u to drag."""

import webbrowser
from dataclasses import dataclass

from gpt2np.files.writing import replacing
from speculative import Shape
from speculative.pages.server import FOLDER, Server

from .. import options as shared
from ..brought import in_brief, line_of
from ..files import check_writable
from ..models import Models
from ..options import DRAFTING, ENDS, PAIR, SAMPLING, all_entries, option
from ..prompts import prompts_of
from ..samplers import Entrant, described
from ..settings import check, settings_of
from ..values import Written

TAKES = PAIR + DRAFTING + SAMPLING + ENDS + "prompt models_dir source"
DEFAULTS = {"temperature": 0.7, "n_tokens_to_generate": 60}
EXAMPLES = ("", "--target_model_size 355M --draft_model_size 124M", "--html page.html")
FORM = {"prompt": "prompt", "temperature": "temperature", "n_tokens": "n_tokens_to_generate", "seed": "seed"}


@dataclass(frozen=True)
class Options(shared.Options):
    html: str = option("", "FILE.html", Written((".html",)),
        "write the page with p, q and u to this file, and show nothing")  # fmt: skip


def run(options):
    if options.html:
        if others := [f"--{name}" for name in options.given if name != "html"]:
            raise ValueError(f"--html writes a page that no option changes: leave out {', '.join(others)}")
        with replacing(check_writable(options.html)) as path:
            path.write_bytes((FOLDER / "explore.html").read_bytes())
        print(f"{options.html} is written: open it in a browser")
        return
    [(options, _)], _ = settings_of(options)
    models = Models(options)
    about = Entrant(options, models).about  # says now what is wrong
    prompts_of(options, *models.target())
    is_usual = (options.target_model_size, options.drafter, options.draft_model_size) == ("tiny-target", "model", "")
    names = "" if is_usual else f"{about['target']['name']} and its draft ({about['draft']['name']})"
    settings = {name: getattr(options, field) for name, field in FORM.items()} | {"prompt": options.prompt[0]}
    in_words = lambda error: in_brief(error) if line_of(error) else str(error)  # noqa: E731
    server = Server(maker(options, models), settings | {"K": length_in(options), "models": names}, in_words)
    with server:
        print(f"{server.address}  (Ctrl-C ends it)", flush=True)
        webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def length_in(options):
    """What the form has as K: a number to change, or the text of a --K or --tree that decides by itself."""
    return options.given["tree"] if isinstance(options.tree, Shape) else options.K


def maker(options, models):
    """The function `make` of speculative.pages.live, for the models and the drafter that the options name."""
    entries = all_entries(Options)

    def make(prompt, K, **values):
        """The values of the form are read as options, and refused as these are."""
        values = {FORM[name]: entries[FORM[name]].read(str(value)) for name, value in values.items()}
        setting = options.but(prompt=(str(prompt),), **values)
        if K:
            setting = setting if isinstance(length_in(options), str) else setting.but(K=entries["K"].read(str(K)))
            check(setting)
        [prompt] = prompts_of(setting, *models.target())
        entrant = Entrant(setting, models, drafts=bool(K), n_prompt=len(prompt.tokens))
        entrant.settle(entrant.settled(prompt.tokens))
        rounds = entrant.rounds(prompt.tokens, setting.n_tokens_to_generate, setting.seed)
        about = entrant.about | described(setting)
        return entrant.sampler(len(prompt.tokens)), rounds, prompt.tokens, entrant.tokenizer.decode, about

    return make
