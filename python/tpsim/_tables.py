"""The tables of results, which _values.py writes as text, and as HTML in the colors of a notebook."""

from typing import Iterable, List, Optional, Sequence, Tuple

from tpsim import _reports as results
from tpsim._values import TABLES, Row, Table

_MOST_ROWS = 20


def _table(title: str, head: Row, rows: Iterable[Row]) -> List[Table]:
    shown = list(rows)
    more = len(shown) - _MOST_ROWS
    if more > 0:
        shown = shown[:_MOST_ROWS] + [[f"{more:,} more"] + [""] * (len(shown[0]) - 1)]
    return [Table(title, head, shown)]


# Unit of time, its length in seconds, and the shortest time that is printed in this unit.
_UNITS = (("h", 3600.0, 7200.0), ("min", 60.0, 120.0), ("s", 1.0, 1.0), ("ms", 1e-3, 1e-3), ("us", 1e-6, 0.0))


def _unit(value: float) -> Tuple[str, float]:
    return next((unit, size) for unit, size, least in _UNITS if abs(value) >= least)


def _seconds(value: float) -> str:
    unit, size = _unit(value)
    return f"{value / size:.4g} {unit}"


def _step(value: float, low: float, high: float) -> str:
    """Returns a step time and its interval as text, both in the unit that suits the step time."""
    unit, size = _unit(value)
    return f"{value / size:.4g} {unit}, {low / size:.4g} to {high / size:.4g} {unit}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _parameters(count: int) -> str:
    return f"{count / 1e9:.4g} B parameters"


def _layout(plan: results.Plan) -> str:
    parts = [f"tp {plan.tp}", f"pp {plan.pp}", f"dp {plan.dp}"]
    parts += [f"cp {plan.cp}"] * (plan.cp > 1) + [f"ep {plan.ep}"] * (plan.ep > 1)
    parts += [f"ZeRO {plan.zero}", f"micro-batch {plan.micro_batch}"]
    if plan.pp > 1:
        chunks = f" x {plan.virtual_stages}" if plan.virtual_stages > 1 else ""
        parts.append(plan.schedule + chunks)
    if plan.recompute != "none":
        parts.append(f"recompute {plan.recompute}")
    parts += ["offload"] * (plan.offload != "none")
    parts += [plan.precision] * (plan.precision != "none")
    return ", ".join(parts)


_PLAN_HEAD = ("layout", "step, 90 % interval", "tokens/s", "MFU", "memory", "fits")


def _fits(predicted: results.Prediction) -> str:
    return ("yes" if predicted.p_oom <= 0.5 else "no") + f", p(OOM) {_percent(predicted.p_oom)}"


def _plan_row(plan: results.Plan) -> Row:
    predicted = plan.predicted
    if predicted is None:
        return [_layout(plan)] + [""] * (len(_PLAN_HEAD) - 1)
    memory = predicted.memory_gib
    return [
        ("= " if plan.ties else "") + _layout(plan),
        _step(predicted.step_s, predicted.step_s_low, predicted.step_s_high),
        f"{predicted.tokens_per_s:,.0f}", _percent(predicted.mfu),
        f"{memory.peak:.1f} of {memory.capacity:.1f} GiB", _fits(predicted)]


def _scenario(report: results.ScenarioReport) -> str:
    return (f"{report.model}, {_parameters(report.parameters)}, on {report.gpus:,} GPUs of "
            f"{report.cluster} ({report.stack}, profile {report.profile.name})")


def _plan(plan: results.Plan) -> List[Table]:
    head = _PLAN_HEAD if plan.predicted else _PLAN_HEAD[:1]
    return _table(f"Plan of {plan.gpus:,} GPUs", head, [_plan_row(plan)[:len(head)]])


def _search(report: results.PlanReport) -> List[Table]:
    return _table(_scenario(report), _PLAN_HEAD, map(_plan_row, report.plans))


def _simulated(report: results.SimulateReport) -> List[Table]:
    breakdown = report.predicted.breakdown_s.items()
    longest = sorted((item for item in breakdown if item[1] > 0), key=lambda item: -item[1])
    rows = [(name, _seconds(time), _percent(time / report.predicted.step_s))
            for name, time in longest]
    return (_table(_scenario(report), _PLAN_HEAD, [_plan_row(report.plan)])
            + _table("Where the step goes", ("term", "time", "share"), rows))


def _explained(report: results.ExplainReport) -> List[Table]:
    step = report.predicted.step_s
    terms = sorted((term for term in report.terms if term.time_s > 0), key=lambda term: -term.time_s)
    rows = [(term.name, _seconds(term.time_s), _percent(term.time_s / step), term.formula,
             term.source) for term in terms]
    return (_table(_scenario(report), _PLAN_HEAD, [_plan_row(report.plan)])
            + _table("Terms of the step", ("term", "time", "share", "formula", "source"), rows))


def _program(report: results.ProgramReport) -> List[Table]:
    rows = [(part.part, f"{part.count:,}", phase.phase, f"{len(phase.events):,}")
            for part in report.programs for phase in part.phases]
    return (_table(_scenario(report), _PLAN_HEAD, [_plan_row(report.plan)])
            + _table("What a rank runs", ("part", "count", "phase", "events"), rows))


def _memory(report: results.MemoryReport) -> List[Table]:
    rows = [(f"{peak.stage}", f"{live.bytes / 2**30:.2f} GiB", live.category, live.part, live.label)
            for peak in report.stages for live in peak.live]
    return (_table(_scenario(report), _PLAN_HEAD, [_plan_row(report.plan)])
            + _table("Memory at the peak", ("stage", "size", "category", "part", "contents"), rows))


def _why_not(report: results.WhyNotReport) -> List[Table]:
    plans = [("best", report.best), (f"with {report.asked}", report.other)]
    if report.other is None:
        plans[1:] = [("nearest miss", report.nearest_miss)]
        plans += [(f"{mend.instead} instead of {mend.given_up}", mend.plan) for mend in report.mends]
    rows = [[name, *_plan_row(plan)] for name, plan in plans if plan is not None]
    tables = _table(f"Why not {report.asked}? {report.illegal or ''}".strip(), ("", *_PLAN_HEAD), rows)
    differences = [(row.name, _seconds(row.best_s), _seconds(row.other_s), _seconds(row.difference_s))
                   for row in report.waterfall if row.difference_s]
    if differences:
        tables += _table("Differences", ("term", "best", "other", "difference"), differences)
    return tables


def _what_if(report: results.WhatIfReport) -> List[Table]:
    strongest = sorted(report.sensitivities, key=lambda row: -abs(row.change))
    rows = [(row.constant, f"x {row.factor:.4g}", _seconds(row.step_s), f"{100 * row.change:+.2f} %")
            for row in strongest]
    tables = _table(_layout(report.plan), ("constant", "changed", "step", "change"), rows)
    changes = [(finding.what, f"{better.size} {better.from_:,} -> {better.to:,}",
                _percent(better.gain)) for finding in report.shape for better in finding.better]
    if changes:
        tables += _table("Shape of the model", ("what suits badly", "better", "gain"), changes)
    return tables


def _campaign(report: results.CampaignReport) -> List[Table]:
    time, cost = report.time, report.cost
    unit, length = ("h", 24) if time.wall_days < 2 else ("days", 1)
    rows: List[Row] = [
        ("layout", _layout(report.plan)),
        ("step", _seconds(report.step_s)),
        ("duration", f"{length * time.wall_days:.1f} {unit}, 90 % interval "
                     f"{length * time.wall_days_low:.1f} to {length * time.wall_days_high:.1f}"),
        ("goodput", _percent(time.goodput)),
        ("GPU-hours", f"{cost.gpu_hours:,.0f}, reserved {cost.reserved_gpu_hours:,.0f}"),
        ("energy", f"{cost.total_kwh:,.0f} kWh"),
        ("CO2", f"{cost.total_co2_t:,.1f} t"),
        ("money", f"{cost.usd:,.0f} USD with spare nodes, 90 % interval {cost.usd_low:,.0f} to {cost.usd_high:,.0f}"),
        ("checkpoint", f"every {_seconds(report.checkpoints.interval_s)}"),
        ("a node fails", f"every {_seconds(report.node_failure_every_s)}"),
        ("spare nodes", f"{report.spare_nodes}"),
    ]
    if report.goal is not None:
        rows.append(("goal", report.goal.standing))
    title = (f"{report.model}, {report.tokens:.4g} tokens on {report.gpus:,} GPUs of "
             f"{report.cluster}")
    return _table(title, (), rows)


def _log(report: results.LogReport) -> List[Table]:
    rows: List[Row] = [
        ("measured step", f"{_seconds(report.measured_step_s)}, median of {report.steps:,}"),
        ("predicted step", _step(report.predicted_step_s, report.step_s_low, report.step_s_high)),
        ("gap", f"{100 * report.gap:+.1f} %"),
    ]
    rows += [(f"stage {row.stage}", f"{row.reserved:.1f} GiB, predicted {row.predicted:.1f}")
             for row in report.memory_gib]
    rows += [(finding.cause, finding.evidence) for finding in report.findings]
    rows += [(cause.what, f"would make the step {_seconds(cause.step_s)}") for cause in report.likely]
    return _table("As predicted" if report.as_predicted else "Not as predicted", (), rows)


def _validation(report: results.ValidationReport) -> List[Table]:
    def time(value: Optional[float]) -> str:
        return "" if value is None else _seconds(value)

    def error(value: Optional[float]) -> str:
        return "" if value is None else f"{value:+.1f} %"

    rows = [(row.id, row.cluster, row.stack, time(row.measured_step_s), time(row.predicted_step_s),
             error(row.error_pct), row.outcome) for row in report.rows]
    summary = report.summary
    title = (f"{summary.n:,} runs: mean error {summary.mape:.1f} %, largest {summary.max_ape:.1f} %, "
             f"bias {summary.bias_pct:+.1f} %")
    head = ("run", "cluster", "stack", "measured", "predicted", "error", "outcome")
    return _table(title, head, rows)


def _scaling(report: results.ScalingReport) -> List[Table]:
    rows = [[f"{size.gpus:,}", "" if size.efficiency is None else _percent(size.efficiency),
             *(_plan_row(size.best) if size.best else [size.none or "", *[""] * (len(_PLAN_HEAD) - 1)])]
            for size in report.sizes]
    return _table(f"{report.model} on {report.cluster} ({report.stack})",
                  ("GPUs", "efficiency", *_PLAN_HEAD), rows)


def _comparison(report: results.CompareReport) -> List[Table]:
    names = [one.file.rsplit("/", 1)[-1] for one in report.plans]
    rows = [[name, *_plan_row(one.plan)] for name, one in zip(names, report.plans)]
    tables = _table(f"{len(rows)} plans", ("", *_PLAN_HEAD), rows)
    if report.differs:
        tables += _table("What differs", ("", *names),
                       [[key, *texts] for key, texts in report.differs.items()])
    return tables


def _calibration(report: results.CalibrateReport) -> List[Table]:
    rows = [(one.key, f"{one.before:.4g}", f"{one.after:.4g}", f"{one.error:.2g}")
            for one in report.constants]
    title = (f"{report.on}: mean error {_percent(report.mean_error_before)}, after the fit "
             f"{_percent(report.mean_error_after)}, left out {_percent(report.mean_error_left_out)}")
    return _table(title, ("constant", "before", "after", "standard error"), rows)


def _run(report: results.RunReport) -> List[Table]:
    rows = [(f"{one.step:,}", f"{one.loss:.4f}", f"{one.grad_norm:.4g}", _seconds(one.step_s),
             f"{one.tokens_per_s:,.0f}") for one in report.steps]
    return _table(f"{report.model}, {report.plan}, {report.dtype}, {report.ranks} ranks",
                  ("step", "loss", "gradient norm", "time", "tokens/s"), rows)


TABLES.update({
    results.Plan: _plan,
    results.PlanReport: _search,
    results.ExplainReport: _explained,
    results.ProgramReport: _program,
    results.MemoryReport: _memory,
    results.SimulateReport: _simulated,
    results.WhyNotReport: _why_not,
    results.WhatIfReport: _what_if,
    results.CampaignReport: _campaign,
    results.LogReport: _log,
    results.ValidationReport: _validation,
    results.ScalingReport: _scaling,
    results.CompareReport: _comparison,
    results.CalibrateReport: _calibration,
    results.RunReport: _run,
})
