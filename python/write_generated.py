#!/usr/bin/env python3
"""Generates the files of the Python package that depend on the program. From its table of options: tpsim/_options.py, the
keywords of its functions, and tpsim/_calls.pyi, the types for type checkers. From its schemas of reports (docs/reports.md):
tpsim/_reports.py, the classes of results.

Usage: write_generated.py PROGRAM FOLDER    FOLDER contains the package tpsim
"""

import inspect
import json
import keyword
import os
import re
import subprocess
import sys
import textwrap

OPTIONS_HEAD = '''"""Written by python/write_generated.py from the answers of `tpsim call`."""

from typing import Dict, Tuple

'''

HEAD = '''"""Written by python/write_generated.py from the program's table of options."""

import os
from typing import Any, Dict, Iterable, List, Literal, Optional, Tuple, Union, overload

from tpsim._reports import *
from tpsim._values import AnyPlan, Bools, Ints, Number, PathLike, Texts

'''

REPORTS_HEAD = '''"""Classes of results. Their fields are the keys of the --json documents. Written by python/write_generated.py from the
schemas of the reports. Fields that end in _s are in seconds, and memory is in GiB.
"""

import typing
from typing import Any, Dict, Optional, Tuple

from tpsim._values import AnyLayout, Report, Value

'''

# Reports that functions return, base classes first.
REPORTS = ("simulate-report", "plan-report", "explain-report", "program-report", "memory-report", "why-not-report", "what-if-report",
           "scaling-report", "compare-report", "campaign-report", "log-report", "validate-report", "calibrate-report",
           "run-report")
# Classes whose names differ from the names of their objects.
NAMES = {"run": "Plan", "layout": "Plan", "open_input": "OpenChoice", "parts_searched": "TriedParts", "part": "TermPart",
         "phase": "ProgramPhase", "peak": "PeakMemory", "step_of_waterfall": "TermDifference", "better_size": "ShapeChange",
         "shape_advice": "ShapeFinding", "ramp_phase": "Phase", "logged_memory": "StageReserved", "traced_part": "KernelPart",
         "validated_row": "ValidatedRun", "error_summary": "ValidationSummary", "validate_report": "ValidationReport"}
# Objects that stay dictionaries: name of a key -> value, and the events of a program.
DICTIONARIES = ("terms", "event", "precision_break_even")
# Base classes other than Report of reports, and Value of other objects.
BASES = {"Plan": "AnyLayout", "SimulateReport": "ScenarioReport", "PlanReport": "ScenarioReport", "ExplainReport": "SimulateReport",
         "ProgramReport": "SimulateReport", "MemoryReport": "SimulateReport"}
HOLD_PLAN = ("SimulateReport", "ComparedPlan")  # the layout's keys are one field, `plan`
# Properties: type, meaning, value.
PROPERTIES = {"PlanReport": ("best", "Plan", "Returns the first of plans.", "self.plans[0]"),
              "SimulateReport": ("predicted", "Prediction", "Returns the prediction of plan.",
                                 "typing.cast(Prediction, self.plan.predicted)")}

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
    return re.sub(r"\btyping\.|\btpsim\._\w+\.", "", text).replace("NoneType", "None")


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


def class_name(name):
    """Returns the class of an object of the schemas; empty for one that stays a dictionary."""
    return "" if name in DICTIONARIES else NAMES.get(name, "".join(word.capitalize() for word in name.split("_")))


def referenced(schema):
    """Returns the name of the object that a schema refers to; empty without one."""
    return schema.get("$ref", "").rpartition("/")[2]


def type_of(schema, objects):
    """Returns the Python type of a JSON schema. `objects`: schemas of objects by name."""
    if name := referenced(schema):
        if "additionalProperties" in objects[name]:
            return type_of(objects[name], objects)
        kinds = {type_of(one, objects) for one in objects[name]["properties"].values()} if not class_name(name) else set()
        return class_name(name) or f"Dict[str, {kinds.pop() if len(kinds) == 1 else 'Any'}]"
    if isinstance(schema.get("type"), list):
        return f"Optional[{type_of({**schema, 'type': schema['type'][0]}, objects)}]"
    if schema.get("type") == "array":
        return f"Tuple[{type_of(schema['items'], objects)}, ...]"
    if "additionalProperties" in schema:
        return f"Dict[str, {type_of(schema['additionalProperties'], objects)}]"
    return {"string": "str", "number": "float", "integer": "int", "boolean": "bool"}[schema["type"]]


def class_text(name, base, meaning, keys, required, objects):
    """Returns a class. `keys`: properties of its object that the base class lacks."""
    text = f"class {name}({base}):\n"
    text += textwrap.indent("\n".join(textwrap.wrap(f'"""{meaning}"""', 110)), "    ") + "\n\n"
    if name in HOLD_PLAN:
        own = {key: keys[key] for key in keys if key not in objects["run"]["properties"]}
        keys, required = {"plan": {"$ref": "#/$defs/run", "description": ""}, **own}, ["plan", *required]
    for key, schema in keys.items():
        kind, default = type_of(schema, objects), ""
        if key not in required:
            default = " = ()" if kind.startswith("Tuple") else " = None"
            kind = kind if kind.startswith(("Tuple", "Optional")) else f"Optional[{kind}]"
        field = key + "_" * keyword.iskeyword(key)
        text += f"    {field}: {kind}{default}  # {schema['description']}".rstrip(" #") + "\n"
    if name in PROPERTIES:
        field, kind, meaning, value = PROPERTIES[name]
        text += f'\n    @property\n    def {field}(self) -> {kind}:\n        """{meaning}"""\n        return {value}\n'
    return text


def contained_first(schema, objects, found):
    """Adds the names of the objects that a schema contains, at every depth, each after those that it contains itself."""
    inner = [schema[key] for key in ("items", "additionalProperties") if key in schema]
    for one in [*schema.get("properties", {}).values(), *inner]:
        contained_first(one, objects, found)
    name = referenced(schema)
    if name and name not in found:
        contained_first(objects[name], objects, found)
        found.append(name)


def reports_text(program):
    """Returns the module of all classes of results, in an order in which base classes and types of fields come first."""
    objects, names = {}, []
    for report in REPORTS:
        shown = subprocess.run([program, "show", "schema", report], check=True, text=True, stdout=subprocess.PIPE)
        schema = json.loads(shown.stdout)
        objects.update({report.replace("-", "_"): schema, **schema["$defs"]})
        contained_first(schema, objects, names)
    heading = [key for key in objects["simulate_report"]["properties"] if key in objects["plan_report"]["properties"]]
    objects["scenario_report"] = {"description": "Base class of reports with a model, a machine and software.",
                                  "properties": {key: objects["plan_report"]["properties"][key] for key in heading},
                                  "required": objects["plan_report"]["required"]}
    names = [name for name in names if name != "layout" and class_name(name) and "properties" in objects[name]]
    names += ["scenario_report", *(report.replace("-", "_") for report in REPORTS)]
    own = {"AnyLayout": {"tp", "pp", "dp", "cp"}, "Report": {"version"}, "Value": set()}
    body = ""
    for name in names:
        one, schema = class_name(name), objects[name]
        base = BASES.get(one, "Report" if name.endswith("_report") else "Value")
        keys = {key: value for key, value in schema["properties"].items() if key not in own[base]}
        own[one] = own[base] | set(keys)
        required = set(schema["required"]) & set(objects["layout"]["required"]) if one == "Plan" else schema["required"]
        body += "\n" + class_text(one, base, schema["description"], keys, required, objects) + "\n"
    listed = "".join(f'    "{class_name(name)}",\n' for name in names)
    return f"{REPORTS_HEAD}__all__ = [\n{listed}]\n\n{body.rstrip()}\n"


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
    write(os.path.join(package, "_reports.py"), reports_text(program))
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    write(os.path.join(package, "_calls.pyi"), stub_text())


main()
