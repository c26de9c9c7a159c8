"""From sizes and a budget to a plan that explains itself."""

from mercer.planner.exact import plan_exact
from mercer.planner.plan import Plan

__all__ = ["Plan", "plan_exact"]
