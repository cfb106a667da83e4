#!/usr/bin/env python3
"""Writes tpsim/_calls.pyi, what type checkers read, from the signatures of the built module.

Usage: write_stub.py FOLDER    the folder that holds the package tpsim
"""

import inspect
import os
import re
import sys

HEAD = '''"""Written by python/write_stub.py from the program's table of options."""

import os
from typing import Any, Dict, Iterable, Literal, Optional, Tuple, Union, overload

from tpsim._results import *
from tpsim._results import AnyPlan, Bools, Ints, Number, PathLike, Texts

'''

# The type of explain()'s answer depends on these three arguments alone.
OFF = "Literal[False] = False"
EXPLAIN = [
    ({"why_not": "None = None", "what_if": OFF, "program": OFF}, "ExplainReport"),
    ({"why_not": "Union[str, Iterable[str]]", "what_if": OFF, "program": OFF}, "WhyNotReport"),
    ({"why_not": "None = None", "what_if": "Literal[True]", "program": OFF}, "WhatIfReport"),
    ({"why_not": "None = None", "what_if": OFF, "program": "Literal[True]"}, "ProgramReport"),
]


def type_text(annotation):
    if isinstance(annotation, str):
        return annotation
    text = re.sub(r"ForwardRef\('([^']+)'\)", r"\1", inspect.formatannotation(annotation))
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


def main():
    folder = sys.argv[1]
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
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
    path = os.path.join(folder, "tpsim", "_calls.pyi")
    with open(path + ".new", "w", encoding="utf-8") as out:
        out.write(text.rstrip() + "\n")
    os.replace(path + ".new", path)


main()
