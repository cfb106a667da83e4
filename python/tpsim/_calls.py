"""The commands of tpsim as functions. Each keyword is the option of the same name; None means that
it is not given.

A keyword of a searched setting takes one value, a list, or the text of the command line: tp=4,
tp=[4, 8] or tp="4,8". Sizes and times are texts with a unit: max_memory="72GiB", step_time="105s".

The keywords come from the program's table of options (_options.py). The build generates _calls.pyi
for type checkers from the same table (python/write_generated.py).
"""

import inspect
import itertools
import keyword
import numbers
import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, TypeVar, Union

from tpsim._options import OPTIONS
from tpsim._program import call
from tpsim._results import (
    AnyPlan, Bools, CampaignReport, ExplainReport, Ints, LogReport, Number, PathLike, Plan,
    PlanReport, ProgramReport, SimulateReport, Texts, ValidationReport, WhatIfReport, WhyNotReport,
    needed_plan_text, plan_from, plan_report_from, plan_text, report_from, single_report_from)

Function = TypeVar("Function", bound=Callable[..., Any])


class Option(NamedTuple):
    """An option as a keyword: its name, its placeholder in --help (empty for a switch), and whether
    it takes a list.
    """

    name: str
    value: str
    takes_list: bool


# Options that the Python functions lack, because their report (of a measured run) does not have a
# class here.
_WITHOUT_TYPE = {"explain": {"runs", "row"}}


def _options_of(command: str) -> List[Option]:
    left_out = _WITHOUT_TYPE.get(command, set())
    return [Option(*row) for row in OPTIONS[command] if row[0] not in left_out]


def _annotation(option: Option) -> str:
    """Returns the type of an option's keyword, from its placeholder in --help."""
    if option.value in ("on|off", "0|1|2|3", "N") or option.value.startswith("N,"):
        one, several = ("bool", "Bools") if option.value == "on|off" else ("int", "Ints")
        return several if option.takes_list else f"Optional[{one}]"
    if option.value == "":
        return "bool"
    if "FILE" in option.value or "DIR" in option.value:
        return "Optional[PathLike]"
    return "Texts" if option.takes_list or "," in option.value else "Number" if option.value.isupper() else "Optional[str]"


def _keywords(command: str) -> List[inspect.Parameter]:
    return [
        inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY,
                          default=None if option.value else False, annotation=_annotation(option))
        for option in _options_of(command)
        if not keyword.iskeyword(option.name)  # --from is the parameter from_
    ]


def _with_options(command: str) -> Callable[[Function], Function]:
    """Returns a decorator that adds a command's options as keywords to the function's own
    parameters.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD]
        named = {parameter.name.rstrip("_") for parameter in own}
        added = [option for option in _keywords(command) if option.name not in named]
        all_of_them = signature.replace(parameters=own + added)
        setattr(function, "__signature__", all_of_them)
        function.__annotations__ = {p.name: p.annotation for p in all_of_them.parameters.values()}
        function.__annotations__["return"] = signature.return_annotation
        return function

    return decorate


def _single_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (str, numbers.Real)):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise TypeError(f"{name} has the type {type(value).__name__}; it must be a str, number, bool, "
                    "path, or a list of these")


# Maximum number of values in a list, more than any setting has. An iterable may be infinite.
_MOST_VALUES = 4096


def _text(name: str, value: Any) -> str:
    """Returns a value as the command line writes it. `name` is the keyword, for errors."""
    is_list = isinstance(value, Iterable) and not isinstance(
        value, (str, bytes, bytearray, memoryview, Mapping, os.PathLike))
    if not is_list:
        return _single_text(name, value)
    values = list(itertools.islice(value, _MOST_VALUES + 1))
    if len(values) > _MOST_VALUES:
        raise TypeError(f"{name} has more than {_MOST_VALUES} values")
    return ",".join(_single_text(name, one) for one in values)


def _given(command: str, options: Dict[str, Any], **own: Any) -> Dict[str, str]:
    """Returns the given options with their values as text. Switches that are off are omitted."""
    switches = {option.name for option in _options_of(command) if not option.value}
    known = [option.name for option in _options_of(command)]
    for name in options:
        if name not in known:
            import difflib  # imported only if an error needs it

            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise TypeError(f"{command}() got an unexpected keyword argument '{name}'{hint}")
    texts = {}
    for name, value in {**own, **options}.items():
        if name in switches:
            if value:
                texts[name] = ""
        elif value is not None:
            texts[name] = _text(name, value)
    return texts


@_with_options("plan")
def plan(
    model: Union[PathLike, Plan], *, gpus: Union[int, str, None] = None, **options: Any
) -> PlanReport:
    """Finds the best layouts of a model for a number of GPUs; see tpsim plan --help.

    `model` is a name in the catalogue, a tpsim model file, a Hugging Face config.json, or a Plan.
    With a Plan, the search keeps the plan's model, machine, software, precision, batch and number
    of GPUs. With pareto, returns the Pareto front of step time and memory. Raises Error of kind
    "does_not_fit" if no plan fits in memory.
    """
    saved = plan_text(model) if isinstance(model, Plan) else None
    named = None if isinstance(model, Plan) else model
    return plan_report_from(call("plan", _given("plan", options, model=named, gpus=gpus), saved))


@_with_options("simulate")
def simulate(plan: Optional[AnyPlan] = None, **options: Any) -> SimulateReport:
    """Predicts one plan. If `plan` is given, the keywords change it; otherwise they define it.

    Raises Error of kind "does_not_fit" if the plan probably runs out of memory, unless allow_oom is
    set.
    """
    answer = call("simulate", _given("simulate", options), plan_text(plan))
    return single_report_from(SimulateReport, answer)


@_with_options("explain")
def explain(
    plan: Optional[AnyPlan] = None, *, why_not: Texts = None, what_if: bool = False,
    program: bool = False, **options: Any
) -> Union[ExplainReport, WhyNotReport, WhatIfReport, ProgramReport]:
    """Returns every term of a plan's prediction with its formula, inputs and source. With gpus,
    explains the best plan for this number of GPUs.

    why_not="tp=8" compares the best plan with the best plan that has tp 8, or returns the reason
    why there is none. It requires a plan or gpus. what_if returns the machine and model sizes that
    would change the best plan. program lists the ops, collectives and allocations of a rank.
    """
    given = _given("explain", options, why_not=why_not, what_if=what_if, program=program)
    answer = call("explain", given, plan_text(plan))
    if why_not is not None:
        return report_from(WhyNotReport, answer)
    if what_if:
        return report_from(WhatIfReport, answer)
    if program:
        return single_report_from(ProgramReport, answer)
    return single_report_from(ExplainReport, answer)


@_with_options("campaign")
def campaign(
    plan: Optional[AnyPlan] = None, *, tokens: Union[float, str], **options: Any
) -> CampaignReport:
    """Predicts a whole training run: days, GPU-hours, energy, CO2, cost, failures and checkpoints.
    """
    given = _given("campaign", options, tokens=tokens)
    return report_from(CampaignReport, call("campaign", given, plan_text(plan)))


@_with_options("export")
def export(plan: AnyPlan, *, to: str, **options: Any) -> Dict[str, str]:
    """Returns the launch files of a training stack for the plan: texts by file name.

    Raises Error with the reason if the stack cannot express the plan. The error has the kind
    "does_not_fit" if the plan does not fit in memory (unless allow_oom is set), or if importing the
    files gives another plan (unless allow_loss is set).
    """
    answer = call("export", _given("export", options, to=to), needed_plan_text("export", plan))
    return {file["name"]: file["text"] for file in answer.document["files"]}


@_with_options("import_plan")
def import_plan(launch: PathLike, *, from_: str, model: PathLike, **options: Any) -> Plan:
    """Imports a plan from a folder of launch files, or from one launch file."""
    given = _given("import_plan", options, model=model)
    given["from"] = from_
    return plan_from(call("import_plan", given, path=os.fsdecode(launch)))


def load_plan(path: PathLike) -> Plan:
    """Reads a plan file. The plan does not have a prediction."""
    return plan_from(call("read_plan", path=os.fsdecode(path)))


@_with_options("check_log")
def check_log(log: PathLike, *, plan: AnyPlan, **options: Any) -> LogReport:
    """Compares a training log with the prediction of its plan. If they differ, names the likely
    cause.
    """
    text = needed_plan_text("check_log", plan)
    answer = call("check_log", _given("check_log", options), text, os.fsdecode(log))
    return report_from(LogReport, answer)


@_with_options("validate")
def validate(runs: PathLike, **options: Any) -> ValidationReport:
    """Predicts every run in a table of measured runs, and returns the errors of the predictions."""
    return report_from(ValidationReport, call("validate", _given("validate", options, runs=runs)))


def models() -> List[str]:
    """Returns the names of the catalogue's models."""
    return _names("models")


def clusters() -> List[str]:
    """Returns the names of the catalogue's clusters."""
    return _names("clusters")


def profiles() -> List[str]:
    """Returns the names of the catalogue's profiles."""
    return _names("profiles")


def stacks() -> List[str]:
    """Returns the names of the catalogue's software stacks."""
    return _names("stacks")


def _names(kind: str) -> List[str]:
    names: List[str] = call(kind).document
    return names
