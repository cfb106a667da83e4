#!/usr/bin/env python3
"""Generates the files of the Python package that depend on the program's table of options. tpsim/_options.py has the
keywords of its functions, tpsim/_calls.pyi the types for type checkers.

Usage: write_generated.py PROGRAM FOLDER    FOLDER contains the package tpsim
"""

import inspect
import json
import os
import re
import subprocess
import sys

OPTIONS_HEAD = '''"""Written by python/write_generated.py from the answers of `tpsim call`."""

from typing import Dict, Tuple

'''

HEAD = '''"""Written by python/write_generated.py from the program's table of options."""

import os
from typing import Any, Dict, Iterable, List, Literal, Optional, Tuple, Union, overload

from tpsim._results import *
from tpsim._results import AnyPlan, Bools, Ints, Number, PathLike, Texts

'''

# These four arguments determine the result type of explain().
OFF = "Literal[False] = False"
EXPLAIN = [
    ({"why_not": "None = None", "what_if": OFF, "program": OFF, "memory": OFF}, "ExplainReport"),
    ({"why_not": "Union[str, Iterable[str]]", "what_if": OFF, "program": OFF, "memory": OFF},
     "WhyNotReport"),
    ({"why_not": "None = None", "what_if": "Literal[True]", "program": OFF, "memory": OFF},
     "WhatIfReport"),
    ({"why_not": "None = None", "what_if": OFF, "program": "Literal[True]", "memory": OFF},
     "ProgramReport"),
    ({"why_not": "None = None", "what_if": OFF, "program": OFF, "memory": "Literal[True]"},
     "MemoryReport"),
]


def type_text(annotation):
    if isinstance(annotation, str):
        return annotation
    text = re.sub(r"ForwardRef\('([^']+)'\)", r"\1", inspect.formatannotation(annotation))
    text = re.sub(r"os\.PathLike(?!\[)", "os.PathLike[str]", text)
    return text.replace("typing.", "").replace("tpsim._results.", "").replace("NoneType", "None")


def parameter_text(parameter):
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return type_text(parameter.annotation) + default


def function_text(function, changed, returns=None):
    signature = inspect.signature(function)
    lines = []
    for parameter in signature.parameters.values():
        if parameter.kind == parameter.KEYWORD_ONLY and "    *," not in lines:
            lines.append("    *,")
        text = changed.get(parameter.name, parameter_text(parameter))
        lines.append(f"    {parameter.name}: {text},")
    answer = returns or type_text(signature.return_annotation)
    return "\n".join([f"def {function.__name__}(", *lines, f") -> {answer}: ...\n"])


def answers(program, *calls):
    """Returns the program's answers to these calls, which do not have options."""
    lines = [json.dumps({"format": "tpsim-request/1", "call": call}) for call in calls]
    done = subprocess.run([program, "call"], input="\n".join(lines), check=True, text=True,
                          stdout=subprocess.PIPE)
    return [json.loads(line)["answer"] for line in done.stdout.splitlines()]


def options_text(program):
    version, options = answers(program, "version", "options")
    text = OPTIONS_HEAD + f"VERSION = {version!r}\n\n"
    text += "# Options by function: name, placeholder in --help (empty for a switch), whether it takes a list.\n"
    text += "OPTIONS: Dict[str, Tuple[Tuple[str, str, bool], ...]] = {\n"
    for call, rows in options.items():
        text += f"    {call!r}: (\n"
        for row in rows:
            text += f"        {(row['name'], row['value'], row['takes_list'])!r},\n"
        text += "    ),\n"
    return text + "}\n"


def stub_text():
    from tpsim import _calls

    text = HEAD
    for name, function in vars(_calls).items():
        if not inspect.isfunction(function) or name.startswith("_"):
            continue
        if function.__module__ != "tpsim._calls":
            continue
        if name == "explain":
            for changed, returns in EXPLAIN:
                text += "@overload\n" + function_text(function, changed, returns) + "\n"
        else:
            text += function_text(function, {}) + "\n"
    return text.rstrip() + "\n"


def write(path, text):
    with open(path + ".new", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(path + ".new", path)


def main():
    program, folder = sys.argv[1:]
    package = os.path.join(folder, "tpsim")
    write(os.path.join(package, "_options.py"), options_text(program))
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    write(os.path.join(package, "_calls.pyi"), stub_text())


main()
