"""Mistakes as edits of a right program, and the text files that list them.

    [chain] REST

    on a rejection you drew from the target; draw from max(0, p - q), normalised
      residual(p, q) => p
      name: residual from the target
      why: A rejected token is replaced by a draw from p. But min(p, q) was accepted already.

A section begins with the program that its entries edit, a function or a method, and its name. An entry is the sentence
that names the mistake, and below it, indented by two spaces:

    old => new          code that occurs once in the program, and what takes its place; \\n begins a new line. Further
                        changes follow
    or                  a different edit that the grader names by the same sentence
    for n in 1, 2, 3    one edit for each value of {n}, and one entry for each if the sentence contains {n}
    = program           the name of a wrong program, in place of an edit
    tell: function      the name of a function that recognises the mistake where no edit has exactly the same results
    part: accept        what the grader compares, if it is not to find out by itself (see testing/diagnosis.py)
    name: ...           for the museum: name, why, seen, and options of its toy case

A line that is indented by four spaces continues the line above it, and so does a second line of a sentence. A line that
begins with two spaces and a + is a further line of new code. A line that begins with # is a comment.
"""

import ast
import inspect
import linecache
import re
import textwrap
from functools import cache, cached_property, partial

import numpy as np

from . import Mistake


class Edit:
    """A right program with changes to its code; called like the right program.

    Parameters
    ----------
    right : function
    changes : list of (old, new)
        Each old text occurs once in the code, after the changes before it.
    names : dict
        What the new code may use in addition to the globals of the right program.
    part : str, optional
        The part of a verifier's decisions that it changes.
    """

    def __init__(self, right, changes, names, part=None):
        self.right = right
        self.changes = changes
        self.names = names
        self.part = part
        self.edit = self  # like a class with an edited method
        self.trees = getattr(right, "trees", False)
        self.__name__ = right.__name__
        self.__signature__ = inspect.signature(right)

    def __call__(self, *arguments, **named):
        with np.errstate(all="ignore"):
            return self.program(*arguments, **named)

    def __get__(self, instance, owner):  # as a method
        return self if instance is None else partial(self, instance)

    @cached_property
    def source(self):
        """The code after the changes."""
        return changed(code_of(self.right), self.changes, self.__name__)

    @cached_property
    def program(self):
        """The compiled function. Its lines are kept for tracebacks."""
        file, names = f"<{self.__name__} {self.changes}>", {**self.right.__globals__, **self.names}
        linecache.cache[file] = len(self.source), None, self.source.splitlines(keepends=True), file
        exec(compile(self.source, file, "exec"), names)
        return names[self.__name__]


def changed(code, changes, name):
    """The code after changes (old, new), in this order; ValueError unless each old text occurs once."""
    for old, new in changes:
        if code.count(old) != 1:
            raise ValueError(f"{name}: {old!r} occurs {code.count(old)} times in its code")
        code = code.replace(old, new)
    return code


@cache
def code_of(program):
    """The source of a function, without its docstring and comments."""
    lines = textwrap.dedent(inspect.getsource(program)).splitlines(keepends=True)
    [node] = ast.parse("".join(lines)).body
    if ast.get_docstring(node):
        del lines[node.body[0].lineno - 1 : node.body[0].end_lineno]
    return re.sub(r"(?m)^ *#.*\n|  # .*$", "", "".join(lines))


# ------------------------------------------------------------------------------------------------ text files

OF_AN_ENTRY = "name", "why", "seen"  # the fields of a Mistake; the other fields are its options
PART_OF = {"WHOLE": "all", "ACCEPT": "accept", "REST": "rest", "BONUS": "bonus", "BLOCK": "all"}  # section -> `part`


def read(path, programs, names):
    """The mistakes in a text file, dict section -> list of `Mistake`.

    `programs` contains the right programs: functions, or classes and objects whose methods are edited. `names` is what
    edits use, including wrong programs.
    """
    sections = {}
    for header, entries in parsed(path.read_text(encoding="utf-8")):
        program, title = header.removeprefix("[").split("] ")
        name, _, method = program.partition(".")
        edited = partial(variant, programs[name], method, names)
        for sentence, lines in entries:
            sections.setdefault(title, []).extend(mistakes_of(sentence, lines, edited, names, PART_OF.get(title)))
    return sections


def variant(right, method, names, changes, part):
    """The right program with these changes: an `Edit`, or a class or object with an edited method."""
    if not method:
        return Edit(right, changes, names, part)
    of_class = right if isinstance(right, type) else type(right)
    edit = Edit(inspect.getattr_static(of_class, method), changes, names, part)
    wrong = type(of_class.__name__, (of_class,), {method: edit, "edit": staticmethod(edit)})
    return wrong if right is of_class else wrong()


def parsed(text):
    """[(header of a section, [(sentence, lines below it), ...]), ...]; lines that continue others are joined."""
    sections = []
    for line in text.splitlines():
        entries = sections[-1][1] if sections else []
        if line.startswith("["):
            sections.append((line, []))
        elif line.startswith("  + "):
            entries[-1][1][-1] += f"\n{line[4:]}"
        elif line.startswith("    "):
            entries[-1][1][-1] += " " + line.strip()
        elif line.startswith("  "):
            entries[-1][1].append(line.strip())
        elif line.startswith("#"):
            continue
        elif line and entries and not entries[-1][1]:  # the sentence goes on
            entries[-1] = (f"{entries[-1][0]} {line}", [])
        elif line:
            entries.append((line, []))
    return sections


def mistakes_of(sentence, lines, edited, names, part):
    """The mistakes of an entry: one, or one for each value of a variable in the sentence."""
    edits, programs, values, fields = [[]], [], [("", "")], {}
    for line in lines:
        if " =>" in line:
            edits[-1].append(line)
        elif line == "or":
            edits.append([])
        elif line.startswith("for "):
            variable, _, listed = line.removeprefix("for ").partition(" in ")
            values = [(f"{{{variable}}}", value) for value in listed.split(", ")]
        elif line.startswith("= "):
            programs.append(names[line.removeprefix("= ")])
        elif match := re.match(r"(\w+): ", line):
            fields[match[1]] = line.removeprefix(match[0])
        else:
            raise ValueError(f"neither an edit nor a field of an entry: {line!r}")
    said = {name: fields.pop(name) for name in OF_AN_ENTRY if name in fields}
    said |= {"tell": names.get(fields.pop("tell", None)), "options": fields}
    part = fields.pop("part", part)
    variants = [(value, edited(changes_in(edit, *value), part)) for value in values for edit in edits if edit]
    if values[0][0] and values[0][0] in sentence:
        return [Mistake(sentence.replace(*value), wrong, **said) for value, wrong in variants]
    return [Mistake(sentence, programs or [wrong for _, wrong in variants], **said)]


def changes_in(lines, variable, value):
    """The changes [(old, new), ...] in these lines, with a value for a variable."""
    both = [line.replace(variable, value).replace("\\n", "\n").split(" =>") for line in lines]
    return [(old, new.removeprefix(" ")) for old, new in both]
