"""Classes of results. Their fields have the names of the keys in the --json documents.

Documents: docs/json.md, docs/campaign.md, docs/check-log.md. Fields that end in _s are in seconds,
and memory is in GiB.
"""

import dataclasses
import functools
import json
import os
import typing
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, NoReturn, Optional, Tuple, Type, TypeVar, Union

from tpsim import _program
from tpsim._program import Answer

__all__ = [
    "Assumption", "CalibrateReport", "CalibratedRow", "CampaignCost", "CampaignReport",
    "CampaignTime", "Checkpoints", "CompareReport", "ComparedBytes", "ComparedPlan", "ExplainReport", "Finding",
    "FittedConstant", "FittedPart", "LiveMemory", "LogReport", "MeasuredSnapshot", "Memory", "MemoryBreakEven",
    "MemoryReport", "Mend", "PartProgram", "PeakMemory", "Phase", "Plan", "PlanBreakEven",
    "PlanReport", "Prediction", "Profile", "ProgramPhase", "ProgramReport", "Replanned", "Replays",
    "Report", "RunCollective", "RunOp", "RunReport", "ScaledSize", "ScalingReport", "Search",
    "Sensitivity", "ShapeChange", "ShapeFinding", "SimulateReport", "SiteMemory", "Sources", "StageMemory",
    "StageReserved", "Term", "TermDifference", "TrainedStep", "TriedParts", "ValidatedRun",
    "ValidationReport", "ValidationSummary", "WhatIfReport", "WhyNotReport",
]
if typing.TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    def dataclass_transform(**_):
        return lambda kind: kind

T = TypeVar("T")
if typing.TYPE_CHECKING:
    PathLike = Union[str, os.PathLike[str]]
else:
    PathLike = Union[str, os.PathLike]  # os.PathLike[str] needs Python 3.9


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value:
    """Base class of results. Every subclass is a frozen dataclass.

    The methods below replace those that dataclass() would generate for each class. Generating
    methods for sixty classes would take most of the import time.
    """

    def __init_subclass__(cls) -> None:
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **values: Any) -> None:
        for one in _fields(type(self)):
            if one.name in values:
                self.__dict__[one.name] = values.pop(one.name)
            elif one.default is not dataclasses.MISSING:
                self.__dict__[one.name] = one.default
            else:
                raise TypeError(f"{type(self).__name__}() needs '{one.name}'")
        if values:
            raise TypeError(f"{type(self).__name__}() has no '{next(iter(values))}'")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field '{name}'")

    def __delattr__(self, name: str) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot delete field '{name}'")

    def __repr__(self) -> str:
        shown = (f"{one.name}={getattr(self, one.name)!r}" for one in _fields(type(self)) if one.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

    def _compared(self) -> Tuple[Any, ...]:
        return tuple(getattr(self, one.name) for one in _fields(type(self)) if one.compare)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._compared() == typing.cast(Value, other)._compared()

    def __hash__(self) -> int:
        return hash(self._compared())


def _fields(kind: type) -> Tuple["dataclasses.Field[Any]", ...]:
    return dataclasses.fields(typing.cast(Any, kind))


@functools.lru_cache(maxsize=None)
def _hints(kind: type) -> Dict[str, Any]:
    """Returns the type of each field of a class."""
    return typing.get_type_hints(kind)


def _value(kind: Any, data: Any) -> Any:
    """Converts a JSON value to the type of a field."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if data is None:
        return None
    if origin is Union:
        return _value(next(one for one in inner if one is not type(None)), data)
    if origin is tuple:
        return tuple(_value(inner[0], item) for item in data)
    if origin is dict:
        return {key: _value(inner[1], item) for key, item in data.items()}
    if dataclasses.is_dataclass(kind):
        return _read(typing.cast(Type[Any], kind), data)
    return float(data) if kind is float else data


def _read(kind: Type[T], data: Mapping[str, Any], **own: Any) -> T:
    """Builds a result from its JSON document. Keys without a field are ignored. `own` sets further
    fields.
    """
    hints = _hints(typing.cast(Any, kind))
    values = {
        one.name: _value(hints[one.name], data[one.name.rstrip("_")])  # from_: "from" is a keyword
        for one in _fields(kind)
        if one.init and one.name not in own and one.name.rstrip("_") in data
    }
    return kind(**values, **own)


class StageMemory(Value):
    """Peak memory of one device of a pipeline stage by kind, in GiB."""

    stage: int
    weights: float
    gradients: float
    optimizer: float
    activations: float
    workspace: float
    communication: float
    context: float
    fragmentation: float
    total: float


class Memory(Value):
    """Memory of one device in GiB: its capacity, the peak of the stage that needs the most, and the
    memory of each stage.

    host_of_node is the host memory per node that holds the offloaded optimizer state of its GPUs.
    """

    capacity: float
    peak: float
    host_of_node: float
    by_stage: Tuple[StageMemory, ...]


class Sources(Value):
    """Shares of the device time by the source of the kernel times: measured at this size,
    interpolated between measured sizes, or analytical model.
    """

    exact_entries: float
    interpolated_entries: float
    model: float


class Prediction(Value):
    """Prediction of a plan. The sum of the terms in breakdown_s is step_s."""

    step_s: float
    step_s_low: float
    step_s_high: float
    hw_tflops_per_gpu: float
    model_tflops_per_gpu: float
    half_mask_tflops_per_gpu: float
    mfu: float
    tokens_per_s: float
    bubble_fraction: float
    p_oom: float
    memory_gib: Memory
    breakdown_s: Dict[str, float]
    sources: Sources


class Plan(Value):
    """A layout of a model over GPUs, with its model, machine and prediction.

    Every function that takes a plan accepts a Plan or the path of a plan file.
    """

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    etp: int
    virtual_stages: int
    zero: int
    micro_batch: int
    global_batch: int
    sequence_parallel: bool
    recompute: str
    recompute_blocks: int
    attention: str
    schedule: str
    stage_layers: Tuple[int, ...]
    dtype: str
    gradient_dtype: str
    rank_order: str
    offload: str
    precision: str
    fp8_param_gather: bool
    predicted: Optional[Prediction] = None
    # Set by a search for the shortest step: the probability that the best plan is faster than this
    # one, and whether it is below 90 %.
    p_best_is_faster: Optional[float] = None
    ties: Optional[bool] = None
    file: str = field(default="", repr=False, compare=False)  # text of the plan file

    @property
    def gpus(self) -> int:
        """Returns the number of GPUs."""
        return self.tp * self.pp * self.dp * self.cp

    def text(self) -> str:
        """Returns the text of the plan file. Raises ValueError for a plan in a campaign's report,
        which does not contain its model.
        """
        if not self.file:
            raise ValueError("a plan in a campaign's report does not contain its model: call "
                             "tpsim.simulate() with the model and the settings of the plan")
        return self.file

    def save(self, path: PathLike) -> None:
        """Writes the plan file that every command of tpsim reads."""
        text = self.text()
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)

    def _repr_html_(self) -> str:
        """Returns a table for notebooks."""
        return _html_of(self)


# Types of keyword arguments.
Ints = Union[int, str, Iterable[int], None]
Texts = Union[str, Iterable[str], None]
Bools = Union[bool, str, Iterable[bool], None]
Number = Union[int, float, str, None]
AnyPlan = Union[Plan, PathLike]


def plan_from(answer: Answer) -> Plan:
    """Builds the plan from the answer for a plan file. The plan does not have a prediction."""
    return _read(Plan, answer.document["plan"], file=answer.files[0])


class Search(Value):
    """Statistics of a search: the number of combinations considered, of those that fit in memory,
    of those simulated, and of those skipped, by reason. A combination is skipped if it is invalid,
    or if even its best case is worse than the plans shown.
    """

    considered: int
    feasible: int
    simulated: int  # combinations that were simulated event by event
    pruned: Dict[str, int]
    objective: str
    leaves_out_offload: bool  # some plans did not fit, and offload was not searched
    inputs_hash: str  # hash of model, cluster, stack, profile and constraints
    seconds: float


class Profile(Value):
    """The profile with the kernel times of the GPU. provenance is measured, published or a
    datasheet.
    """

    name: str
    provenance: str


class Report(Value):
    """Base class of reports. to_dict() returns the command's --json document."""

    document: str = field(repr=False, compare=False)

    def to_dict(self) -> Dict[str, Any]:
        """Returns the whole --json document as a dictionary."""
        document: Dict[str, Any] = json.loads(self.document)
        return document

    def _repr_html_(self) -> str:
        """Returns a short table for notebooks."""
        return _html_of(self)


def _html_of(value: Value) -> str:
    from tpsim import _html  # imported here: it imports this module

    return _html.html_of(value)


class OpenChoice(Value):
    """An input that was not stated, its assumed value, and the range of the step time over its
    possible values.
    """

    what: str
    taken: str
    option: str
    others: int
    spread_pct: float
    spread_faster_pct: float
    half_width_pct_if_stated: float


class Assumed(Value):
    """Upper half-width of the 90 % interval in percent of the step time: if all inputs were stated,
    and with the inputs as they are. `open` lists the inputs that were not stated.
    """

    half_width_pct_all_stated: float
    half_width_pct_all_open: float
    open: Tuple[OpenChoice, ...]


class TriedParts(Value):
    """Software parts that a search tried, and the step time of the best plan with these parts.
    None: no plan fits in memory.
    """

    parts: Dict[str, str]
    step_s: Optional[float] = None


class ScenarioReport(Report):
    """Base class of reports with a model, a machine and software."""

    model: str
    parameters: int
    active_parameters: int
    cluster: str
    stack: str
    gpus: int
    profile: Profile


class PlanReport(ScenarioReport):
    """The best plans of a search, best first."""

    search: Search
    plans: Tuple[Plan, ...]
    assumed: Optional[Assumed] = None
    parts_searched: Optional[Tuple[TriedParts, ...]] = None
    parts_not_searched: Optional[Tuple[TriedParts, ...]] = None
    other_batch: Optional[Plan] = None

    @property
    def best(self) -> Plan:
        """Returns the first of plans."""
        return self.plans[0]


class SimulateReport(ScenarioReport):
    """One plan with its prediction."""

    plan: Plan
    assumed: Optional[Assumed] = None

    @property
    def predicted(self) -> Prediction:
        """Returns the prediction of plan."""
        assert self.plan.predicted is not None
        return self.plan.predicted


class TermPart(Value):
    """A software part that affects a term. asked_for: the user requested the value; otherwise it is
    the stack's.
    """

    name: str
    value: str
    asked_for: bool


class Term(Value):
    """A term of the step time with its formula, the values in the formula, and the sources of its
    constants.
    """

    name: str
    time_s: float
    formula: str
    inputs: str
    parts: Tuple[TermPart, ...]
    source: str


class ExplainReport(SimulateReport):
    """One plan with every term of its prediction."""

    terms: Tuple[Term, ...] = ()


class ProgramPhase(Value):
    """The events of a phase (such as forward) in order: ops, collectives, allocations and frees."""

    phase: str
    events: Tuple[Dict[str, Any], ...]


class PartProgram(Value):
    """The program of a rank for a part of the model, such as a block. `count` is the number of such
    parts, and `block` the kind of block.
    """

    part: str
    count: int
    phases: Tuple[ProgramPhase, ...]
    block: Optional[int] = None
    recomputed: Optional[bool] = None


class ProgramReport(SimulateReport):
    """One plan with the programs (ops, collectives, allocations) from which it was predicted."""

    programs: Tuple[PartProgram, ...] = ()


class LiveMemory(Value):
    """Memory of one rank at the peak: a category, a part of the model, and what is stored. Negative
    bytes: what the framework does not keep of the other rows.
    """

    category: str
    part: str
    label: str
    bytes: float


class PeakMemory(Value):
    """Contents of a stage's memory when its tensors are at their peak, largest first."""

    stage: int
    task: str
    chunk: int
    micro_batch: int
    live: Tuple[LiveMemory, ...]


class ComparedBytes(Value):
    """Measured and predicted memory of one rank."""

    what: str
    measured_bytes: float
    predicted_bytes: float


class SiteMemory(Value):
    """Memory that one place of a program has allocated."""

    site: str
    blocks: int
    bytes: float


class MeasuredSnapshot(Value):
    """A memory snapshot of PyTorch, compared with the prediction."""

    rank: int
    stage: int
    events: int
    missing_bytes: float
    start_up_bytes: float
    compared: Tuple[ComparedBytes, ...]
    live: Tuple[SiteMemory, ...]


class MemoryReport(SimulateReport):
    """One plan with the contents of each stage's memory at its peak."""

    stages: Tuple[PeakMemory, ...] = ()
    measured: Optional[MeasuredSnapshot] = None


class TermDifference(Value):
    """A term of the step time in the best plan and in the other plan. The sum of all differences is
    the difference of the step times.
    """

    name: str
    best_s: float
    other_s: float
    difference_s: float


class Mend(Value):
    """A constraint that was dropped, the value that replaces it, and the best plan without the
    constraint.
    """

    given_up: str
    instead: str
    plan: Plan


class WhyNotReport(Report):
    """Comparison of the best plan with the best plan that has the requested settings, or the reason
    why no such plan exists.
    """

    asked: str
    best: Plan
    other: Optional[Plan] = None
    ties: bool = False
    waterfall: Tuple[TermDifference, ...] = ()
    nearest_miss: Optional[Plan] = None
    illegal: str = ""
    mends: Tuple[Mend, ...] = ()
    enough_gpus: int = 0


class Sensitivity(Value):
    """Step time of the same plan if a constant of the machine is multiplied by `factor`."""

    constant: str
    factor: float
    step_s: float
    change: float


class MemoryBreakEven(Value):
    """Memory per device from which another plan becomes the best. gain is None if no plan fits in
    today's memory.
    """

    memory_gib: float
    gain: Optional[float]
    plan: Plan


class PlanBreakEven(Value):
    """Factor of a machine constant from which another plan becomes the best. `plan` describes this
    plan.
    """

    constant: str
    factor: float
    plan: str


class ShapeChange(Value):
    """Another value of a model size, and the gain in step time for the same amount of work."""

    size: str
    from_: int
    to: int
    gain: float


class ShapeFinding(Value):
    """A model size that is inefficient on this GPU with this plan, and better values near it."""

    what: str
    better: Tuple[ShapeChange, ...]


class WhatIfReport(Report):
    """Sensitivity of the step time to machine constants and model sizes. With gpus or a plan, also
    the points from which another plan is the best.
    """

    plan: Plan
    sensitivities: Tuple[Sensitivity, ...]
    shape: Tuple[ShapeFinding, ...]
    memory_break_evens: Tuple[MemoryBreakEven, ...] = ()
    plan_break_evens: Tuple[PlanBreakEven, ...] = ()


class ScaledSize(Value):
    """The best plan for a number of GPUs. `none` is the reason if no plan exists; all other values
    are then None.
    """

    gpus: int
    global_batch: int
    best: Optional[Plan] = None
    tokens_per_s_per_gpu: Optional[float] = None
    efficiency: Optional[float] = None  # relative to the first size that has a plan
    parts: Optional[Dict[str, str]] = None  # if several software parts were searched
    none: Optional[str] = None


class ScalingReport(Report):
    """The best plans for several numbers of GPUs."""

    model: str
    cluster: str
    profile: str
    stack: str
    sizes: Tuple[ScaledSize, ...]


class ComparedPlan(Value):
    """A plan of a comparison. The probability of the order is None if the plans differ in model,
    batch or machine.
    """

    file: str
    model: str
    cluster: str
    profile: str
    stack: str
    fits: bool
    terms_s: Dict[str, float]
    tokens_per_s_per_gpu: float
    gpu_hours_per_billion_tokens: float
    plan: Plan
    p_faster_than_first: Optional[float] = None
    ties_with_first: Optional[bool] = None


class CompareReport(Report):
    """Several plans, and the settings and inputs that differ: one text per plan."""

    plans: Tuple[ComparedPlan, ...]
    differs: Dict[str, Tuple[str, ...]]


class CampaignTime(Value):
    """Duration of a run in days, by category. The sum of the categories is wall_days."""

    wall_days: float
    wall_days_low: float
    wall_days_high: float
    goodput: float
    steps_days: float
    checkpoints_days: float
    failures_days: float
    waiting_days: float
    downtime_days: float


class CampaignCost(Value):
    """GPU-hours, energy, CO2 and cost of a run, for the GPUs alone and in total."""

    gpu_hours: float
    reserved_gpu_hours: float
    gpu_kwh: float
    total_kwh: float
    gpu_co2_t: float
    total_co2_t: float
    reserved_gpu_kwh: float
    reserved_total_kwh: float
    reserved_gpu_co2_t: float
    reserved_total_co2_t: float
    usd_run: float
    usd: float


class Checkpoints(Value):
    """Size, duration and interval of a run's checkpoints, and the best interval by three formulas.
    """

    bytes: float
    write_s: float
    stop_s: float
    interval_s: float
    interval_steps: int
    best_s: float
    young_s: float
    daly_s: float
    count: int


class Replays(Value):
    """Statistics of simulated campaigns with random failures."""

    campaigns: int
    mean_days: float
    standard_error_days: float
    p5_days: float
    median_days: float
    p95_days: float
    failures: float
    lost_h: float
    waiting_h: float


class Replanned(Value):
    """The best plan after the permanent loss of some nodes. If no plan fits, only lost_nodes is
    set.
    """

    lost_nodes: int
    fits: bool
    gpus: Optional[int] = None
    plan: Optional[Plan] = None
    step_s: Optional[float] = None
    tokens_per_s: Optional[float] = None
    peak_gib: Optional[float] = None


class Assumption(Value):
    """An assumption of a campaign: a number with its unit, and its source."""

    value: str
    source: str


class Phase(Value):
    """A phase of a run with constant batch size, as in batch-size ramp-up."""

    global_batch: int
    steps: int
    step_s: float


class GoalSize(Value):
    """A cluster size, compared with a goal. `standing` is "sure", "as predicted" or "missed". `none`
    is the reason if no plan exists for this size.
    """

    gpus: int
    plan: Optional[Plan] = None
    step_s: Optional[float] = None
    spare_nodes: int = 0
    checkpoint_interval_s: Optional[float] = None
    wall_days: Optional[float] = None
    wall_days_low: Optional[float] = None
    wall_days_high: Optional[float] = None
    reserved_gpu_hours: Optional[float] = None
    usd: Optional[float] = None
    standing: str = "missed"
    none: str = ""


class Goal(Value):
    """A goal (deadline, budget or both), and every cluster size that was tried."""

    standing: str
    sizes: Tuple[GoalSize, ...]
    deadline_days: Optional[float] = None
    budget_usd: Optional[float] = None


class CampaignReport(Report):
    """Prediction of a whole run: time, cost, energy, failures and checkpoints."""

    model: str
    cluster: str
    gpus: int
    nodes: int
    plan: Plan
    tokens: float
    step_s: float
    predicted_step_s: float
    node_failure_every_s: float
    spare_nodes: int
    spare_nodes_wanted: int
    time: CampaignTime
    cost: CampaignCost
    checkpoints: Checkpoints
    replays_with_unlimited_spares: Replays
    replays: Replays
    replanned: Tuple[Replanned, ...]
    assumptions: Dict[str, Assumption]
    phases: Tuple[Phase, ...]
    goal: Optional[Goal] = None
    assumed: Optional[Assumed] = None


class StageReserved(Value):
    """Reserved memory of a stage in GiB: the highest value of its ranks in the log, and the
    prediction.
    """

    stage: int
    reserved: float
    predicted: float


class Finding(Value):
    """A cause of the difference between log and prediction, with its evidence."""

    cause: str
    evidence: str


class LikelyCause(Value):
    """A changed assumption, and the step time predicted with it."""

    what: str
    step_s: float


class KernelPart(Value):
    """A part of the step: its time in the trace's kernels, and the predicted time of the same
    terms.
    """

    what: str
    measured_s: float
    predicted_s: float


class TracedCollective(Value):
    """All calls of one kind of collective in a traced step, whether overlapped or not."""

    name: str
    calls: float
    time_s: float


class TracedKernels(Value):
    """Times of the kernels in the traced steps of one rank."""

    steps: int
    rank: int
    parts: Tuple[KernelPart, ...]
    collectives: Tuple[TracedCollective, ...]


class LogReport(Report):
    """Comparison of a training log with the prediction. Causes of a difference are sorted: the main
    cause is first.
    """

    as_predicted: bool
    steps: int
    measured_step_s: float
    predicted_step_s: float
    step_s_low: float
    step_s_high: float
    time_as_predicted: bool
    memory_as_predicted: bool
    memory_gib: Tuple[StageReserved, ...]
    findings: Tuple[Finding, ...]
    gap: float
    warm_up_steps: int
    nan_losses: int
    skipped_steps: int
    load_balancing_loss: Optional[float]
    z_loss: Optional[float]
    logged_expert_load: Optional[float]
    logged_tflops_per_gpu: float
    measured_tflops_per_gpu: float
    measured_half_mask_tflops_per_gpu: float
    model_tflops_per_gpu: float
    other_batch_steps: int
    likely: Tuple[LikelyCause, ...]
    training_part: Optional[str] = None  # why only a part of the logged step was compared
    kernels: Optional[TracedKernels] = None  # only if the log is a torch.profiler trace


class ValidatedRun(Value):
    """A measured run and its prediction. Missing values are None."""

    id: str
    outcome: str
    calibration: bool
    measured_step_s: Optional[float]
    predicted_step_s: Optional[float]
    low_s: Optional[float]
    high_s: Optional[float]
    error_pct: Optional[float]
    half_peak_s: Optional[float]
    measured_mem_gb: Optional[float]
    predicted_mem_gb: Optional[float]
    predicted_fits: Optional[bool]
    p_oom: Optional[float]
    skipped_because: Optional[str]
    cluster: str
    stack: str
    parts: str
    assumed: List[str]


class ValidationSummary(Value):
    """Errors of the predicted step time over many runs, in percent."""

    n: int
    mape: float
    half_peak_mape: float
    median_ape: float
    p95_ape: float
    max_ape: float
    bias_pct: float
    kendall_tau: Optional[float]
    pair_spread_pct: Optional[float]
    top1_regret_pct: float
    interval_coverage_90: float
    mem_n: int
    mem_mape: float
    mem_max_ape: float
    oom_total: int
    oom_caught: int
    false_oom: int


class ValidationReport(Report):
    """Predictions of measured runs, and their errors."""

    rows: Tuple[ValidatedRun, ...]
    summary: ValidationSummary
    summary_test_rows: ValidationSummary
    summary_calibration_rows: ValidationSummary


class CalibratedRow(Value):
    """A run: its step measured, and predicted before and after, and with constants that were fitted
    on the other runs.
    """

    id: str
    measured_step_s: float
    before_step_s: float
    after_step_s: float
    left_out_step_s: Optional[float] = None


class FittedConstant(Value):
    """A constant of a file before and after, its relative standard error, and the information that
    the runs hold on it, 0 to 1.
    """

    file: str
    key: str
    before: float
    after: float
    error: float
    told: Optional[float] = None


class FittedPart(Value):
    """A software part that the runs decide."""

    key: str
    before: str
    after: str


class CalibrateReport(Report):
    """Constants of a stack and a cluster, fitted to measurements. Errors are mean absolute errors of
    the runs.
    """

    stack: Optional[str]
    cluster: Optional[str]
    on: str
    constants: Tuple[FittedConstant, ...]
    mean_error_before: float
    mean_error_after: float
    mean_error_left_out: float
    rows: Tuple[CalibratedRow, ...] = ()
    parts: Tuple[FittedPart, ...] = ()
    way: Optional[float] = None
    residual_spread: Optional[float] = None
    contradicting: Tuple[str, ...] = ()
    skipped: Tuple[str, ...] = ()


class TrainedStep(Value):
    """A step of a training run."""

    step: int
    loss: float
    grad_norm: float
    step_s: float
    tokens_per_s: float
    model_gflops_per_rank: float
    peak_memory_mib: float
    used_memory_mib: float


class RunOp(Value):
    """All executions of an op on the first rank."""

    op: str
    key: str
    label: str
    count: int
    seconds: float


class RunCollective(Value):
    """All executions of a collective on the first rank."""

    collective: str
    group: str
    label: str
    ranks: int
    bytes: int
    count: int
    seconds: float


class RunReport(Report):
    """A training run of the reference model on this machine."""

    model: str
    plan: str
    dtype: str
    ranks: int
    steps: Tuple[TrainedStep, ...]
    completed: bool
    ops: Tuple[RunOp, ...]
    collectives: Tuple[RunCollective, ...]


def report_from(kind: Type[T], answer: Answer) -> T:
    """Builds a report of this class from the answer."""
    return _read(kind, answer.document, document=json.dumps(answer.document))


def plan_report_from(answer: Answer) -> PlanReport:
    """Builds the report of a search. Each plan gets the text of its plan file."""
    data = answer.document
    plans = tuple(_read(Plan, plan, file=text) for plan, text in zip(data["plans"], answer.files))
    return _read(PlanReport, data, document=json.dumps(data), plans=plans)


def compare_report_from(document: Dict[str, Any]) -> CompareReport:
    """Builds the report of a comparison, whose plans have the keys of their layouts."""
    plans = tuple(_read(ComparedPlan, one, plan=_read(Plan, one, file=""))
                  for one in document["plans"])
    return _read(CompareReport, document, document=json.dumps(document), plans=plans)


def single_report_from(kind: Type[T], answer: Answer) -> T:
    """Builds the report of simulate, whose document is the plan itself, or of explain, which has
    the plan under a key.
    """
    data = answer.document
    plan = _read(Plan, data.get("plan", data), file=answer.files[0])
    return _read(kind, data, document=json.dumps(data), plan=plan)


def plan_text(plan: Union[Plan, PathLike, None]) -> Optional[str]:
    """Returns the text of a plan file. If the path does not contain a plan, raises the same Error
    as the command line.
    """
    if plan is None:
        return None
    if isinstance(plan, Plan):
        return plan.text()
    return _program.call("read_plan", path=os.fsdecode(plan)).files[0]


def needed_plan_text(function: str, plan: Union[Plan, PathLike]) -> str:
    """Returns the text of a plan file, for functions that require a plan. TypeError if `plan` is
    None or not a path.
    """
    text = plan_text(plan)
    if text is None:
        raise TypeError(f"{function}() needs a plan: a Plan, or the path of a plan file")
    return text
