"""The commands as functions. A keyword is the option of that name; None leaves it out.

A dimension of a search takes one value, several, or the option's own text: tp=4, tp=[4, 8],
tp="4,8". A size or time is text with its unit: max_memory="72GiB", step_time="105s".
"""

import os
from typing import Any, Dict, Iterable, Literal, Optional, Union, overload

from tpsim import _native
from tpsim._results import (
    CampaignReport,
    ExplainReport,
    LogReport,
    PathLike,
    Plan,
    PlanReport,
    SimulateReport,
    ValidationReport,
    WhatIfReport,
    WhyNotReport,
    plan_from_file,
    plan_report_from,
    plan_text,
    report_from,
    single_report_from,
)

Ints = Union[int, str, Iterable[int], None]
Texts = Union[str, Iterable[str], None]
Bools = Union[bool, str, Iterable[bool], None]
Number = Union[int, float, str, None]
AnyPlan = Union[Plan, PathLike]


def _text(value: Any) -> str:
    """A value as the command line writes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    return ",".join(_text(item) for item in value)


def _options(given: Dict[str, Any], *switches: str) -> Dict[str, str]:
    """What was given beside the plan itself, without switches that are off."""
    options = {}
    for name, value in given.items():
        if name == "plan":
            continue
        if name in switches:
            if value:
                options[name] = ""
        elif value is not None:
            options[name] = _text(value)
    return options


def plan(
    model: PathLike,
    *,
    gpus: Union[int, str],
    cluster: Optional[PathLike] = None,
    stack: Optional[PathLike] = None,
    profile: Optional[PathLike] = None,
    seq: Optional[int] = None,
    global_batch: Optional[int] = None,
    top: Optional[int] = None,
    objective: Optional[str] = None,
    max_memory: Optional[str] = None,
    max_oom: Union[float, str, None] = None,
    exclude: Texts = None,
    uneven_ends: Optional[int] = None,
    threads: Optional[int] = None,
    pareto: bool = False,
    tp: Ints = None,
    pp: Ints = None,
    dp: Ints = None,
    cp: Ints = None,
    zero: Ints = None,
    micro_batch: Ints = None,
    virtual_stages: Ints = None,
    recompute: Texts = None,
    sequence_parallel: Bools = None,
    attention: Texts = None,
    schedule: Texts = None,
    rank_order: Texts = None,
    offload: Texts = None,
    dtype: Optional[str] = None,
    gradient_dtype: Optional[str] = None,
) -> PlanReport:
    """Finds the best layouts of a model over a number of GPUs; see tpsim plan --help.

    model is a catalogue name, a tpsim model file or a Hugging Face config.json. Raises Error, of
    kind "does_not_fit", when nothing fits. With pareto, the plans that no other beats in both time
    and memory.
    """
    given = _options(locals(), "pareto")
    document, files = _native.plan(given)
    return plan_report_from(document, files)


def simulate(
    plan: Optional[AnyPlan] = None,
    *,
    model: Optional[PathLike] = None,
    cluster: Optional[PathLike] = None,
    stack: Optional[PathLike] = None,
    profile: Optional[PathLike] = None,
    seq: Optional[int] = None,
    global_batch: Optional[int] = None,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    dp: Optional[int] = None,
    cp: Optional[int] = None,
    zero: Optional[int] = None,
    micro_batch: Optional[int] = None,
    virtual_stages: Optional[int] = None,
    recompute: Optional[str] = None,
    sequence_parallel: Optional[bool] = None,
    attention: Optional[str] = None,
    schedule: Optional[str] = None,
    rank_order: Optional[str] = None,
    offload: Optional[str] = None,
    dtype: Optional[str] = None,
    gradient_dtype: Optional[str] = None,
    stage_layers: Ints = None,
    count_embedding: bool = False,
    no_count_embedding: bool = False,
    allow_oom: bool = False,
) -> SimulateReport:
    """Predicts one plan: a given one changed by the keywords, or one made of them.

    Raises Error, of kind "does_not_fit", for a plan that likely runs out of memory, unless
    allow_oom is set.
    """
    given = _options(locals(), "count_embedding", "no_count_embedding", "allow_oom")
    document, file = _native.simulate(given, plan_text(plan))
    return single_report_from(SimulateReport, document, file)


@overload
def explain(
    plan: Optional[AnyPlan] = None,
    *,
    model: Optional[PathLike] = None,
    gpus: Union[int, str, None] = None,
    cluster: Optional[PathLike] = None,
    stack: Optional[PathLike] = None,
    profile: Optional[PathLike] = None,
    seq: Optional[int] = None,
    global_batch: Optional[int] = None,
    objective: Optional[str] = None,
    max_memory: Optional[str] = None,
    max_oom: Union[float, str, None] = None,
    exclude: Texts = None,
    uneven_ends: Optional[int] = None,
    threads: Optional[int] = None,
    tp: Ints = None,
    pp: Ints = None,
    dp: Ints = None,
    cp: Ints = None,
    zero: Ints = None,
    micro_batch: Ints = None,
    virtual_stages: Ints = None,
    recompute: Texts = None,
    sequence_parallel: Bools = None,
    attention: Texts = None,
    schedule: Texts = None,
    rank_order: Texts = None,
    offload: Texts = None,
    dtype: Optional[str] = None,
    gradient_dtype: Optional[str] = None,
    stage_layers: Ints = None,
    count_embedding: bool = False,
    no_count_embedding: bool = False,
    why_not: None = None,
    what_if: Literal[False] = False,
) -> ExplainReport: ...


@overload
def explain(
    plan: Optional[AnyPlan] = None,
    *,
    model: Optional[PathLike] = None,
    gpus: Union[int, str, None] = None,
    cluster: Optional[PathLike] = None,
    stack: Optional[PathLike] = None,
    profile: Optional[PathLike] = None,
    seq: Optional[int] = None,
    global_batch: Optional[int] = None,
    objective: Optional[str] = None,
    max_memory: Optional[str] = None,
    max_oom: Union[float, str, None] = None,
    exclude: Texts = None,
    uneven_ends: Optional[int] = None,
    threads: Optional[int] = None,
    tp: Ints = None,
    pp: Ints = None,
    dp: Ints = None,
    cp: Ints = None,
    zero: Ints = None,
    micro_batch: Ints = None,
    virtual_stages: Ints = None,
    recompute: Texts = None,
    sequence_parallel: Bools = None,
    attention: Texts = None,
    schedule: Texts = None,
    rank_order: Texts = None,
    offload: Texts = None,
    dtype: Optional[str] = None,
    gradient_dtype: Optional[str] = None,
    stage_layers: Ints = None,
    count_embedding: bool = False,
    no_count_embedding: bool = False,
    why_not: Union[str, Iterable[str]],
    what_if: Literal[False] = False,
) -> WhyNotReport: ...


@overload
def explain(
    plan: Optional[AnyPlan] = None,
    *,
    model: Optional[PathLike] = None,
    gpus: Union[int, str, None] = None,
    cluster: Optional[PathLike] = None,
    stack: Optional[PathLike] = None,
    profile: Optional[PathLike] = None,
    seq: Optional[int] = None,
    global_batch: Optional[int] = None,
    objective: Optional[str] = None,
    max_memory: Optional[str] = None,
    max_oom: Union[float, str, None] = None,
    exclude: Texts = None,
    uneven_ends: Optional[int] = None,
    threads: Optional[int] = None,
    tp: Ints = None,
    pp: Ints = None,
    dp: Ints = None,
    cp: Ints = None,
    zero: Ints = None,
    micro_batch: Ints = None,
    virtual_stages: Ints = None,
    recompute: Texts = None,
    sequence_parallel: Bools = None,
    attention: Texts = None,
    schedule: Texts = None,
    rank_order: Texts = None,
    offload: Texts = None,
    dtype: Optional[str] = None,
    gradient_dtype: Optional[str] = None,
    stage_layers: Ints = None,
    count_embedding: bool = False,
    no_count_embedding: bool = False,
    why_not: None = None,
    what_if: Literal[True],
) -> WhatIfReport: ...


def explain(
    plan: Optional[AnyPlan] = None,
    *,
    model: Optional[PathLike] = None,
    gpus: Union[int, str, None] = None,
    cluster: Optional[PathLike] = None,
    stack: Optional[PathLike] = None,
    profile: Optional[PathLike] = None,
    seq: Optional[int] = None,
    global_batch: Optional[int] = None,
    objective: Optional[str] = None,
    max_memory: Optional[str] = None,
    max_oom: Union[float, str, None] = None,
    exclude: Texts = None,
    uneven_ends: Optional[int] = None,
    threads: Optional[int] = None,
    tp: Ints = None,
    pp: Ints = None,
    dp: Ints = None,
    cp: Ints = None,
    zero: Ints = None,
    micro_batch: Ints = None,
    virtual_stages: Ints = None,
    recompute: Texts = None,
    sequence_parallel: Bools = None,
    attention: Texts = None,
    schedule: Texts = None,
    rank_order: Texts = None,
    offload: Texts = None,
    dtype: Optional[str] = None,
    gradient_dtype: Optional[str] = None,
    stage_layers: Ints = None,
    count_embedding: bool = False,
    no_count_embedding: bool = False,
    why_not: Texts = None,
    what_if: bool = False,
) -> Union[ExplainReport, WhyNotReport, WhatIfReport]:
    """Every term of a prediction with its formula, inputs and source. With gpus, of the best plan.

    why_not="tp=8" asks what the best plan has over the best with tp 8, or what stands against that;
    it takes gpus. what_if asks which other machines and shapes would change the plan.
    """
    given = _options(locals(), "count_embedding", "no_count_embedding", "what_if")
    document, file = _native.explain(given, plan_text(plan))
    if why_not is not None:
        return report_from(WhyNotReport, document)
    if what_if:
        return report_from(WhatIfReport, document)
    return single_report_from(ExplainReport, document, file)


def campaign(
    plan: Optional[AnyPlan] = None,
    *,
    tokens: Union[float, str],
    model: Optional[PathLike] = None,
    gpus: Union[int, str, None] = None,
    cluster: Optional[PathLike] = None,
    stack: Optional[PathLike] = None,
    profile: Optional[PathLike] = None,
    seq: Optional[int] = None,
    global_batch: Optional[int] = None,
    objective: Optional[str] = None,
    max_memory: Optional[str] = None,
    max_oom: Union[float, str, None] = None,
    exclude: Texts = None,
    uneven_ends: Optional[int] = None,
    tp: Ints = None,
    pp: Ints = None,
    dp: Ints = None,
    cp: Ints = None,
    zero: Ints = None,
    micro_batch: Ints = None,
    virtual_stages: Ints = None,
    recompute: Texts = None,
    sequence_parallel: Bools = None,
    attention: Texts = None,
    schedule: Texts = None,
    rank_order: Texts = None,
    offload: Texts = None,
    dtype: Optional[str] = None,
    gradient_dtype: Optional[str] = None,
    stage_layers: Ints = None,
    count_embedding: bool = False,
    no_count_embedding: bool = False,
    ramp: Ints = None,
    step_time: Optional[str] = None,
    checkpoint_every: Optional[str] = None,
    lost_nodes: Optional[int] = None,
    replays: Optional[int] = None,
    seed: Optional[int] = None,
    assumptions: Optional[PathLike] = None,
    gpu_power: Optional[str] = None,
    other_power: Optional[str] = None,
    pue: Number = None,
    carbon: Optional[str] = None,
    price: Optional[str] = None,
    node_mtbf: Optional[str] = None,
    storage_bandwidth: Optional[str] = None,
    restart_time: Optional[str] = None,
    repair_time: Optional[str] = None,
    downtime: Optional[str] = None,
    spare_nodes: Optional[int] = None,
) -> CampaignReport:
    """What a whole run takes: days, GPU-hours, energy, CO2, money, failures, checkpoints."""
    given = _options(locals(), "count_embedding", "no_count_embedding")
    return report_from(CampaignReport, _native.campaign(given, plan_text(plan)))


def export(plan: AnyPlan, *, to: str) -> Dict[str, str]:
    """The launch files of a training stack: their texts by name.

    Raises Error with the reason for a plan that the stack cannot express.
    """
    text = plan_text(plan)
    assert text is not None
    return _native.export({"to": to}, text)


def import_plan(
    launch: PathLike,
    *,
    from_: str,
    model: PathLike,
    cluster: Optional[PathLike] = None,
    stack: Optional[PathLike] = None,
    profile: Optional[PathLike] = None,
    seq: Optional[int] = None,
) -> Plan:
    """The plan that lies in a folder of launch files, or in one such file."""
    given = _options(locals())
    path = given.pop("launch")
    given["from"] = given.pop("from_")
    return plan_from_file(_native.import_plan(given, path))


def load_plan(path: PathLike) -> Plan:
    """A plan that was saved, without a prediction."""
    return plan_from_file(_native.read_plan(os.fspath(path)))


def check_log(log: PathLike, *, plan: AnyPlan) -> LogReport:
    """Holds a training log against its plan: is it as predicted, and if not, which term?"""
    text = plan_text(plan)
    assert text is not None
    return report_from(LogReport, _native.check_log({}, text, os.fspath(log)))


def validate(
    runs: PathLike,
    *,
    cluster: Optional[PathLike] = None,
    stack: Optional[PathLike] = None,
    profile: Optional[PathLike] = None,
) -> ValidationReport:
    """Predicts every row of a table of measured runs and says how far off the predictions are."""
    return report_from(ValidationReport, _native.validate(_options(locals())))
