"""Builds results from answers."""

import json
import os
from typing import Any, Dict, Optional, Type, Union

from tpsim import _program
from tpsim._program import Answer
from tpsim._reports import ComparedPlan, CompareReport, Plan, PlanReport
from tpsim._values import PathLike, T, read_value


def plan_from(answer: Answer) -> Plan:
    """Builds the plan from the answer for a plan file. The plan does not have a prediction."""
    return read_value(Plan, answer.document["plan"], file=answer.files[0])


def report_from(kind: Type[T], answer: Answer) -> T:
    """Builds a report of this class from the answer."""
    return read_value(kind, answer.document, document=json.dumps(answer.document))


def plan_report_from(answer: Answer) -> PlanReport:
    """Builds the report of a search. Each plan gets the text of its plan file."""
    data = answer.document
    plans = tuple(read_value(Plan, plan, file=text) for plan, text in zip(data["plans"], answer.files))
    return read_value(PlanReport, data, document=json.dumps(data), plans=plans)


def compare_report_from(document: Dict[str, Any]) -> CompareReport:
    """Builds the report of a comparison, whose plans have the keys of their layouts."""
    plans = tuple(read_value(ComparedPlan, one, plan=read_value(Plan, one, file=""))
                  for one in document["plans"])
    return read_value(CompareReport, document, document=json.dumps(document), plans=plans)


def single_report_from(kind: Type[T], answer: Answer) -> T:
    """Builds the report of simulate, whose document is the plan itself, or of explain, which has
    the plan under a key.
    """
    data = answer.document
    plan = read_value(Plan, data.get("plan", data), file=answer.files[0])
    return read_value(kind, data, document=json.dumps(data), plan=plan)


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
