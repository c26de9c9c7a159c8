"""From sizes and a budget to a plan that explains itself."""

from mercer.planner.embedded import plan_embedded, prefers_exact
from mercer.planner.exact import STORAGES, plan_exact
from mercer.planner.plan import Plan
from mercer.planner.speeds import Speeds, measure_disk, measure_kernel, temporary_folder

__all__ = [
    "STORAGES",
    "Plan",
    "Speeds",
    "measure_disk",
    "measure_kernel",
    "plan_embedded",
    "plan_exact",
    "prefers_exact",
    "temporary_folder",
]
