"""From sizes and a budget to a plan that explains itself."""

from mercer.planner.embedded import plan_embedded, prefers_exact
from mercer.planner.exact import plan_exact
from mercer.planner.plan import Plan

__all__ = ["Plan", "plan_embedded", "plan_exact", "prefers_exact"]
