"""The help text. What it lists of drafters and rules comes from the registry.

Next: arguments.py
"""

from .registry import DRAFTERS, RULES

HELP = """\
Ordinary against speculative generation: the same target model, without and with a draft.

    python main.py                                  the bundled pair, no download
    python main.py --draft_model_size 124M --target_model_size 355M --K 4

--prompt TEXT              what to continue; an empty one starts from <|endoftext|>
--prompt_file FILE         the prompts, one a line, of which a comparison takes one; - for standard input ()
--n_tokens_to_generate N   how many tokens to add, exactly, unless --stop ends the text (120)
--target_model_size M      the model whose text it is (tiny-target): tiny-draft or tiny-target, which are bundled, 124M,
                           355M, 774M, 1558M, or a folder with a GPT-2
--drafter D                what drafts (model):
{drafters}
--draft_model_size M       the model that guesses (tiny-draft), with the target's vocabulary; for --drafter model alone
--corpus FILE              a text to count n-grams in (ngram: some tales that neither bundled model knows) or to copy
                           from, too (suffix: none)
--ngram_table FILE         where the counts of ngram are kept: read if it is there, else counted and written
--n_max N                  the longest n-gram of ngram, the longest match of prompt_lookup (3)
--exit_layer L             after how many layers early_exit leaves the target (2)
--K K                      how many tokens to guess before the target checks them (3): a number; auto, from costs
                           measured first and the acceptance so far, 0 included; heuristic, two more after a whole
                           acceptance and one less otherwise; confidence, until the draft is unsure. With auto the
                           clock has a say: one seed is then not one text
--verifier V               the rule that keeps or drops draft tokens (rejection):
{verifiers}
--temperature T            0 takes the likeliest token each time, 1 draws from the model's own distribution (0)
--top_k N                  draw from the N likeliest tokens only; 0 from all (0)
--top_p P                  ... from the likeliest that together reach probability P (1)
--min_p P                  ... from those with at least P times the probability of the likeliest (0)
--repetition_penalty X     makes tokens that occurred before less likely, above 1 (1)
--stop TEXT                end where the new text contains this ()
--seed N                   of the random numbers: one seed, one text (0)
--models_dir DIR           where the folders 124M, 355M, ... are, and are downloaded to (models)
--source S                 what to download, where a size is not here: hub (safetensors) or openai (TensorFlow) (hub)
--show S                   of the second text: text, or rounds, a line for each call of the target with the guesses that
                           were accepted, those that were not, and what came instead (text)
--trace FILE               keep all rounds with p, q, the random numbers and the decisions: FILE.html is a page to look
                           at, FILE.jsonl is for programs and for replay ()
--json [FILE.json]         print one JSON object with all that was measured, and nothing else; or keep it in a file,
                           beside the page
--help, --version          print this, or the version

    python main.py prompts         native against assisted on the prompts of a well-known evaluation
    python main.py calibrate       what the draft costs and is worth on this machine: the speedup for K = 1 to 8,
                                   predicted and measured
    python main.py gamma_table     K = 1 to 10: speedup in time and in target calls, the alpha and c that fit
    python main.py drafters        every drafter in a table: alpha, c, tokens per call, speedup
    python main.py alpha_table     every drafter: alpha at each temperature, for each target
    python main.py method_table    drafters and verifiers on tales, dialogue, text that repeats itself, known prompts:
                                   tokens per call, speedup, exact or not
    python main.py compare_sizes   seconds of targets of several sizes, natively and with each drafter

Each takes ten seconds to two minutes with the bundled pair on two cores. They take the models and the options above
where these make sense, which is all but --prompt, --stop, --show and --trace; and
--n_prompts N              how many tales to continue (36; 12 for gamma_table, alpha_table, 8 for compare_sizes, 4 for
                           drafters, 3 of each kind for method_table)
--n_tokens_to_generate N   (120; 100 for gamma_table, 64 for calibrate, drafters, alpha_table, 48 for method_table)
--temperature T            (0; 0.5 for method_table, where the rules differ and text still repeats itself)
--prompts P                the prompts of prompts, gamma_table, alpha_table and compare_sizes, unless --prompt_file has
                           them: tales, beginnings that neither bundled model knows; known, the seven of the evaluation
                           (tales, and known for prompts)
--temperatures T,T         of gamma_table and alpha_table (0,1)
--max_K K                  the largest K of gamma_table (10)
--target_sizes M,M         of alpha_table and compare_sizes (tiny-draft,tiny-target)
--drafters D,D             of method_table ({all_drafters}), of compare_sizes (model,ngram)
--verifiers V,V            of method_table ({all_verifiers})
--log FILE.txt             both texts of every prompt of prompts ()
--plot FILE.png            draw the table, too; .pdf or .svg for print; needs matplotlib ()
--json FILE.json           each finished part is kept at once: when interrupted, the same command goes on from there

    python main.py bench           a forward pass for 1 to 9 tokens, against the memory's limit, plain NumPy and, where
                                   it is installed, transformers

--sizes M,M                the models to time, with random weights of that shape where they are not here (124M,355M)
--strategies S,S           panels, rows, plain, transformers; see gpt2np/matmul.py (all that there are)
--rows N, --context N, --prompt_tokens N, --repeats N
                           passes for up to 9 tokens, 100 before them, a prompt of 512, each 7 times
and with transformers, whole generation by both: --draft_model_size, --target_model_size (the bundled pair), --K (3),
--n_tokens_to_generate (60), --n_prompts (3)

    python main.py museum          real mistakes, how far each changes the distribution, which check sees it
    python main.py replay FILE.jsonl [--trace FILE.html]
                                                    the rounds that --trace FILE.jsonl has kept, without a model
"""


def help_text(program):
    """The text, for a reader who starts this program ("python main.py")."""
    text = HELP.format(
        drafters=entries(DRAFTERS), verifiers=entries(RULES), all_drafters=",".join(DRAFTERS),
        all_verifiers=",".join(RULES),
    )  # fmt: skip
    return text.replace("python main.py", program)


def entries(registry):
    """A line for each entry: its name and what it is."""
    return "\n".join(f"{'':27}{name:14} {entry.help}" for name, entry in registry.items())
