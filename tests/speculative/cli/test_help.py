"""The help: every option and every command, in 80 columns."""

import re
from dataclasses import MISSING

import pytest
from command import refusal, run_here

from speculative.cli.commands import find_commands
from speculative.cli.help import help_text
from speculative.cli.options import ENTRIES, GROUPS, Options
from speculative.cli.registry import DRAFTERS, RULES

COMMANDS = find_commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_explains_all_its_options_and_no_other(name):
    page, command = run_here(name, "--help").stdout, COMMANDS[name]
    shown = dict(re.findall(r"^--(\w+)((?: .*)?(?:\n +.*)*)", page, re.M))
    assert shown.keys() == command.options
    for option, text in shown.items():
        default = command.defaults.get(option, getattr(Options(), option))
        default = "all" if ENTRIES[option].default is MISSING and option not in command.defaults else default
        assert default in ("", None) or default is False or f"({default})" in " ".join(text.split())
    assert max(map(len, page.splitlines())) <= 80
    if name not in ("generate", "museum", "audit"):
        assert f"    python main.py {name} {command.example}\n" in page


def test_the_help_starts_with_ten_options_and_lists_the_commands():
    page = run_here("--help").stdout
    first = page.split("The ten to know first\n")[1].split("\n\n")[0]
    assert len(re.findall(r"^--", first, re.M)) == 10 and set(GROUPS) <= ENTRIES.keys()
    assert "The ten" not in run_here("drafters", "--help").stdout
    for command in COMMANDS.values():
        assert re.search(rf"^{command.name} ", page, re.M)
    for kind in (*DRAFTERS.values(), *RULES.values()):
        assert f" {kind.name:14}{kind.help}" in re.sub(r"\n {20}(?! )", " ", page)


def test_the_values_of_an_option_are_a_list():
    assert "\n      2,2,1         the number of children at each depth\n" in run_here("--help").stdout


def test_help_on_all_commands_names_each_option_with_its_command():
    sections = re.split(r"^([A-Z_]+)\n", run_here("help", "all").stdout, flags=re.M)
    found = {name.lower(): set(re.findall(r"--(\w+)", text)) for name, text in zip(sections[1::2], sections[2::2])}
    assert found.keys() == COMMANDS.keys() - {"generate"}
    for name, options in found.items():
        assert COMMANDS[name].options - {COMMANDS[name].word} <= options, name


@pytest.mark.parametrize("words", [["help"], ["-h"], ["--K", "3", "--help"]])
def test_ways_to_ask_for_help(words):
    result = run_here(*words)
    assert result.returncode == 0 and result.stdout == help_text("python main.py", COMMANDS) and result.stderr == ""


def test_help_on_a_command():
    assert run_here("help", "calibrate").stdout == run_here("calibrate", "--help", "--K").stdout
    assert refusal("help", "calibrat") == "unknown command 'calibrat': did you mean calibrate?"


def test_the_program_is_called_as_it_was_started():
    text = help_text("speculative-decoding", COMMANDS, COMMANDS["replay"])
    assert "    speculative-decoding replay FILE.jsonl\n" in text and "main.py" not in text
