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
import math
import numbers
import os
import tempfile
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, TypeVar, Union

from tpsim._errors import Error
from tpsim._options import OPTIONS
from tpsim._program import Answer, call, run_command
from tpsim._reports import (
    CalibrateReport, CampaignReport, CompareReport, ExplainReport, LogReport, MemoryReport, Plan, PlanReport, ProgramReport,
    RunReport, ScalingReport, SimulateReport, ValidationReport, WhatIfReport, WhyNotReport)
from tpsim._results import (
    compare_report_from, needed_plan_text, plan_from, plan_report_from, plan_text, report_from, single_report_from)
from tpsim._values import AnyPlan, Bools, Ints, Number, PathLike, Texts

Function = TypeVar("Function", bound=Callable[..., Any])


class Option(NamedTuple):
    """An option as a keyword: its name, its placeholder in --help (empty for a switch), and whether
    it takes a list.
    """

    name: str
    value: str
    takes_list: bool


# Options that the Python functions lack, because their report (of a measured run, of two programs,
# of one rank) does not have a class here.
_WITHOUT_TYPE = {"explain": {"runs", "row", "diff"}, "run": {"rank"}}


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


def _single_value(name: str, value: Any) -> Union[bool, int, float, str]:
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value) if abs(value) < 2**63 else str(value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise TypeError(f"{name} has the type {type(value).__name__}; it must be a str, number, bool, "
                    "path, or a list of these")


# Maximum number of values in a list, more than any setting has. An iterable may be infinite.
_MOST_VALUES = 4096


def _value(name: str, value: Any) -> Any:
    """Returns a value as JSON. `name` is the keyword, for errors."""
    is_list = isinstance(value, Iterable) and not isinstance(
        value, (str, bytes, bytearray, memoryview, Mapping, os.PathLike))
    if not is_list:
        return _single_value(name, value)
    values = list(itertools.islice(value, _MOST_VALUES + 1))
    if len(values) > _MOST_VALUES:
        raise TypeError(f"{name} has more than {_MOST_VALUES} values")
    return [_single_value(name, one) for one in values]


def _hint_for(command: str, name: str, known: List[str]) -> str:
    """Returns what the program says of an unknown option, or else the nearest keyword."""
    import difflib  # imported only if an error needs it

    try:
        call(command, {name: True})
    except Error as error:
        if error.hint and "the option " + name in error.message and "did you mean" not in error.hint:
            return f": {error.hint}"
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _given(command: str, options: Dict[str, Any], **own: Any) -> Dict[str, Any]:
    """Returns the given options. Switches that are off are omitted."""
    switches = {option.name for option in _options_of(command) if not option.value}
    known = [option.name for option in _options_of(command)]
    for name in options:
        if name not in known:
            raise TypeError(f"{command}() got an unexpected keyword argument '{name}'"
                            + _hint_for(command, name, known))
    given = {}
    for name, value in {**own, **options}.items():
        if name in switches:
            if value:
                given[name] = True
        elif value is not None:
            given[name] = _value(name, value)
    return given


def _run(function: str, command: str, words: List[str], options: Dict[str, Any]) -> Any:
    """Returns the --json document of a command that runs in a process of its own."""
    switches = {option.name for option in _options_of(function) if not option.value}
    for name, value in _given(function, options).items():
        words = [*words, "--" + name.replace("_", "-")]
        if name not in switches:
            values = value if isinstance(value, list) else [value]
            words.append(",".join(
                ("on" if one else "off") if isinstance(one, bool) else str(one) for one in values))
    return run_command([command, *words])


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


@_with_options("scaling")
def scaling(
    model: PathLike, *, gpus: Union[Iterable[int], str], **options: Any
) -> ScalingReport:
    """Finds the best plan for each number of GPUs, with the same batch or, with scaling="weak", a
    batch that grows with the GPUs.
    """
    document = _run("scaling", "plan", [], {"model": model, "gpus": gpus, **options})
    return report_from(ScalingReport, Answer(document, []))


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
    program: bool = False, memory: bool = False, **options: Any
) -> Union[ExplainReport, WhyNotReport, WhatIfReport, ProgramReport, MemoryReport]:
    """Returns every term of a plan's prediction with its formula, inputs and source. With gpus,
    explains the best plan for this number of GPUs.

    why_not="tp=8" compares the best plan with the best plan that has tp 8, or returns the reason
    why there is none. It requires a plan or gpus. what_if returns the machine and model sizes that
    would change the best plan. program lists the ops, collectives and allocations of a rank, and
    memory the contents of the memory at its peak.
    """
    given = _given("explain", options, why_not=why_not, what_if=what_if, program=program,
                   memory=memory)
    answer = call("explain", given, plan_text(plan))
    if why_not is not None:
        return report_from(WhyNotReport, answer)
    if what_if:
        return report_from(WhatIfReport, answer)
    if program:
        return single_report_from(ProgramReport, answer)
    if memory:
        return single_report_from(MemoryReport, answer)
    return single_report_from(ExplainReport, answer)


@_with_options("compare")
def compare(plans: Iterable[AnyPlan], **options: Any) -> CompareReport:
    """Predicts several plans side by side: what differs, their terms, and how sure the order is."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, plan in enumerate(plans):
            if isinstance(plan, Plan):
                paths.append(os.path.join(folder, f"plan-{i + 1}.json"))
                plan.save(paths[-1])
            else:
                paths.append(os.fsdecode(plan))
        return compare_report_from(call("compare", _given("compare", options), path=paths).document)


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
def import_plan(
    launch: PathLike, *, from_: Optional[str] = None, model: Optional[PathLike] = None, **options: Any
) -> Plan:
    """Imports a plan from a folder of launch files, or from one launch file."""
    given = _given("import_plan", options, model=model)
    if from_ is not None:
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


@_with_options("calibrate")
def calibrate(
    measured: Union[PathLike, Iterable[PathLike]], **options: Any
) -> CalibrateReport:
    """Fits constants of a stack and a cluster to tables of runs, training logs or output of
    nccl-tests. save_stack and save_cluster name the files to write.
    """
    files = [measured] if isinstance(measured, (str, os.PathLike)) else list(measured)
    document = _run("calibrate", "calibrate", [os.fsdecode(file) for file in files], options)
    return report_from(CalibrateReport, Answer(document, []))


@_with_options("run")
def run(plan: Optional[AnyPlan] = None, **options: Any) -> RunReport:
    """Trains a plan with the reference model on this machine, and returns losses and times."""
    with tempfile.TemporaryDirectory() as folder:
        words = []
        if plan is not None:
            words = [os.path.join(folder, "plan.json")]
            with open(words[0], "w", encoding="utf-8") as file:
                file.write(needed_plan_text("run", plan))
        return report_from(RunReport, Answer(_run("run", "run", words, options), []))


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
