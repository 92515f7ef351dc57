"""The help text. The lists of drafters and rules come from the registry.

Next: arguments.py
"""

from .registry import DRAFTERS, RULES

HELP = """\
Generate a text twice: by the target model alone, and with a draft (speculative decoding). Compare text and time.

    python main.py                                  the bundled pair, no download
    python main.py --draft_model_size 124M --target_model_size 355M --K 4

--prompt TEXT              the text to continue; an empty one starts from <|endoftext|>
--prompt_file FILE         prompts, one per line; a comparison takes exactly one; - reads standard input ()
--n_tokens_to_generate N   how many tokens to generate; fewer only where --stop ends the text (120)
--target_model_size M      the target model (tiny-target): tiny-draft or tiny-target, which are bundled, 124M, 355M,
                           774M, 1558M, or a folder with a GPT-2
--drafter D                what proposes the draft tokens (model):
{drafters}
--draft_model_size M       the draft model (tiny-draft), with the target's vocabulary; for --drafter model only
--corpus FILE              a text for ngram to count (default: tales that neither bundled model was trained on) and for
                           suffix to copy from, in addition to the text so far (default: nothing)
--ngram_table FILE         stores the counts of ngram: read, and --corpus is not, if the file exists, otherwise counted
                           and written ()
--n_max N                  the longest n-gram of ngram, and the longest match of prompt_lookup (3)
--exit_layer L             the number of layers that early_exit runs (2)
--K K                      the draft length, the most tokens drafted per call of the target (3): a number; auto, chosen
                           from costs measured at the start and the acceptance so far, 0 included; heuristic, two more
                           after a fully accepted draft and one less otherwise; confidence, until the draft model is
                           unsure. With auto the text depends on measured times: one seed may give different texts
--tree T                   draft a tree, not a chain: a number of nodes, in the best shape for a usual draft, or, with
                           suffix and with a model at temperature 0 or with --siblings top, grown where the draft is
                           sure; the number of children at each level, as 2,2,1; or auto, the size and shape that are
                           expected to be fastest by costs and acceptance measured at the start, so that one seed may
                           give different texts, as with --K auto. K limits the depth ()
--siblings S               how a model chooses the children of a node: without, draws without replacement; drawn, one
                           draw, then the most probable tokens; top, the most probable tokens (without)
--verifier V               the acceptance rule for draft tokens (rejection):
{verifiers}
--temperature T            0 always takes the most probable token, 1 samples from the model's own distribution (0)
--draft_temperature T      the temperature that the draft draws its tokens with; 0 is a greedy draft, as in llama.cpp
                           and by default in vLLM. The distribution of the text does not depend on it, the number of
                           accepted tokens does (None: the temperature of the target)
--top_k N                  sample from the N most probable tokens only; 0 means all (0)
--top_p P                  ... from the smallest set of most probable tokens with total probability P (1)
--min_p P                  ... from tokens with at least P times the probability of the most probable one (0)
--repetition_penalty X     above 1, makes tokens that occurred before less probable (1)
--stop TEXT                end the text where the new tokens contain TEXT ()
--seed N                   the seed of the random numbers; one seed gives one text (0)
--models_dir DIR           the folder with the models 124M, 355M, ...; downloads go there (models)
--source S                 where to download a missing model from: hub (safetensors) or openai (TensorFlow) (hub)
--show S                   how to print the second text: text, or rounds, a line for each call of the target with the
                           accepted and rejected draft tokens and what replaced them (text)
--trace FILE               write all rounds with p, q, random numbers and decisions: FILE.html to look at, FILE.jsonl
                           for programs and for replay ()
--json [FILE.json]         print all measurements as one JSON object and nothing else; with a name, write it to the file
                           and print the page as well
--timings                  also print counts and times as llama.cpp does (False)
--help, --version          print this help, or the version

    python main.py prompts         native against assisted, on the prompts of a published comparison
    python main.py calibrate       does it pay here? The speedup for K = 1 to 8, predicted from measured costs and
                                   acceptance, and measured
    python main.py gamma_table     K = 1 to 10: speedup in time and in target calls, and the alpha and c that fit
    python main.py drafters        every drafter in a table: alpha, c, tokens per call, speedup
    python main.py alpha_table     every drafter: alpha at each temperature, for each target
    python main.py method_table    drafters and verifiers on tales, dialogue, repetitive text and known prompts: tokens
                                   per call, speedup, exact or not
    python main.py tree_table      trees of several sizes against chains: acceptance by the number of candidates, tokens
                                   per call, speedup, and whether a tree pays
    python main.py compare_sizes   seconds of targets of several sizes, natively and with each drafter

Each takes ten seconds to two minutes with the bundled pair on two cores. Intervals are 95 % intervals over the prompts.
These commands take the options above, except --prompt, --stop, --show, --trace and --timings, where they apply; and
--n_prompts N              the number of tales to continue (36; 12 for gamma_table, alpha_table, 8 for prompts,
                           compare_sizes, 6 for tree_table, 4 for drafters, 3 of each kind for method_table); the
                           other commands take all known prompts, and all of a file
--n_tokens_to_generate N   (120; 100 for gamma_table, 64 for calibrate, drafters, alpha_table, tree_table, 48 for
                           method_table)
--temperature T            (0; 0.5 for method_table, where the rules differ and text still repeats itself)
--prompts P                the prompts that the commands prompts, gamma_table, alpha_table, tree_table and compare_sizes
                           use without --prompt_file: tales, prefixes of tales that neither bundled model was trained
                           on; known, the seven of the published comparison (tales; known for prompts)
--temperatures T,T         for gamma_table and alpha_table (0,1)
--max_K K                  the largest K of gamma_table (10)
--tree_drafters D,D        for tree_table (model,recycling,heads)
--tree_sizes N,N           the numbers of nodes in tree_table (4,8,12,16,24)
--max_depth N              the most levels in tree_table (4)
--target_sizes M,M         for alpha_table and compare_sizes (tiny-draft,tiny-target)
--drafters D,D             for method_table ({all_drafters}),
                           for compare_sizes (model,ngram)
--verifiers V,V            for method_table ({all_verifiers})
--log FILE.txt             write both texts of every prompt of prompts ()
--plot FILE.png            also draw the table; .pdf or .svg for print; needs matplotlib ()
--json FILE.json           each finished part is written at once; after an interruption the same command resumes

    python main.py bench           a forward pass for 1 to 9 tokens, against the memory's limit; plain NumPy and, if it
                                   is installed, transformers

--sizes M,M                the models to time; a size that is not on disk gets random weights of its shape (124M,355M)
--strategies S,S           panels, rows, eights, plain, transformers; see gpt2np/kernels/matmul.py (all available)
--rows N, --context N, --prompt_tokens N, --repeats N
                           passes for up to 9 tokens, 100 tokens before them, a prompt of 512, each 7 times
with transformers, also whole texts by both libraries: --draft_model_size, --target_model_size (the bundled pair),
--K (3), --n_tokens_to_generate (60), --n_prompts (3)

    python main.py museum          mistakes: the error of the distribution, and the check that catches each
    python main.py audit           is the installed transformers lossless? The exact distribution of its text with a
                                   draft (a model, prompt lookup; with top_k and other options) and without one
    python main.py replay FILE.jsonl [--trace FILE.html]
                                                    the rounds in a file of --trace FILE.jsonl, without a model
"""


def help_text(program):
    """The text for users who start the program by this name ("python main.py")."""
    text = HELP.format(
        drafters=entries(DRAFTERS), verifiers=entries(RULES), all_drafters=",".join(DRAFTERS),
        all_verifiers=",".join(RULES),
    )  # fmt: skip
    return text.replace("python main.py", program)


def entries(registry):
    """A line for each entry: its name and its help."""
    return "\n".join(f"{'':27}{name:14} {entry.help}" for name, entry in registry.items())
