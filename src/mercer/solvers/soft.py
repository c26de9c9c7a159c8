"""The soft c-means loop: fuzzy and possibilistic memberships, in any space.

Each iteration: (1) memberships from the distances to the centres, (2) stop if none changed by more than `tol`,
(3) centres to the means weighted by w u^m. A last pass takes the memberships of the last centres, so that the two
match. The objective never rises for a positive semidefinite kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.engine.checkpoint import Checkpoint
from mercer.solvers.rules import Rule
from mercer.solvers.space import Centers, Labels

_TIE = 1e-6  # share of the objective: runs that differ by less found the same, and the first is taken


@dataclass(frozen=True)
class SoftIteration:
    """What happened in one iteration: objective, largest change of a membership, seconds it took."""

    objective: float
    change: float
    seconds: float


@dataclass(frozen=True)
class SoftStep(Generic[Centers]):
    """Memberships from distances to centres, and what one pass knows of them.

    Attributes
    ----------
    objective : float
    change : float
        Largest difference of a membership from the step before; infinite for the first.
    labels, own : array of shape (n,) or None
        Largest membership, and the squared distance to the centre of that cluster; of a final step only.
    memberships : array of shape (n, k) or None
        If they are kept; the next step overwrites them.
    costs, totals, peaks : array of shape (k,)
        Of each cluster: sum of w u^m d, sum of w u^m, largest membership.
    centers : Centers or None
        The new centres, where the same pass gives them.
    """

    objective: float
    change: float
    labels: Labels | None
    own: NDArray[np.floating] | None
    memberships: NDArray[np.floating] | None
    costs: NDArray[np.float64]
    totals: NDArray[np.float64]
    peaks: NDArray[np.float64]
    centers: Centers | None = None


class SoftSpace(Protocol[Centers]):
    """What the soft loop needs of a space."""

    n_clusters: int
    kept: tuple[type, ...]

    def soft_step(
        self,
        centers: Centers,
        rule: Rule,
        before: tuple[Centers, SoftStep[Centers]] | None,
        *,
        keep: bool,
        final: bool = False,
    ) -> SoftStep[Centers]:
        """Memberships for `centers`; `before` is the step before with its centres, `keep` whether to keep all n k."""

    def soft_centers(self, step: SoftStep[Centers], rule: Rule) -> Centers:
        """Means weighted by w u^m."""

    def center_distances(self, centers: Centers) -> NDArray[np.float64]:
        """Squared distances between centres, shape (k, k)."""


@dataclass(frozen=True)
class SoftPartition(Generic[Centers]):
    """Where a run ended: memberships of the last centres, and how it got there."""

    rule: Rule
    centers: Centers
    last: SoftStep[Centers]
    converged: bool
    history: tuple[SoftIteration, ...]
    stopped: bool = False  # from outside


@dataclass(frozen=True)
class UnfinishedSoft(Generic[Centers]):
    """A run after an iteration: the centres that it began with, from which the next is found again."""

    centers: Centers
    history: tuple[SoftIteration, ...]


@dataclass(frozen=True)
class EndedSoft(Generic[Centers]):
    """A run that has ended, without what its centres give again."""

    rule: Rule
    centers: Centers
    converged: bool
    history: tuple[SoftIteration, ...]
    stopped: bool


def soft_c_means(
    space: SoftSpace[Centers],
    rule: Rule,
    start: Centers | UnfinishedSoft[Centers],
    *,
    max_iter: int,
    tol: float,
    keep: bool = True,
    on_iteration: Callable[[int, SoftIteration], object] = lambda number, iteration: None,
    save: Callable[[UnfinishedSoft[Centers]], None] = lambda unfinished: None,
) -> SoftPartition[Centers]:
    """Alternate between memberships and centres, from given centres.

    Parameters
    ----------
    space : SoftSpace
    rule : Rule
    start : Centers or UnfinishedSoft
        First centres, or a run to go on with.
    max_iter : int
    tol : float
        Stop when no membership changed by more.
    keep : bool
        Whether all memberships are kept.
    on_iteration : callable
        Called with the iteration's number and its record; a true answer ends the run.
    save : callable
        Called with the run after each iteration that is not the last.
    """
    history, converged, stopped = list[SoftIteration](), False, False
    before: tuple[Centers, SoftStep[Centers]] | None = None
    if isinstance(start, UnfinishedSoft):
        history, step = list(start.history), space.soft_step(start.centers, rule, None, keep=keep)
        before, centers = (start.centers, step), _next(space, rule, step)
    else:
        centers = start
    for number in range(len(history) + 1, max_iter + 1):
        started = time.perf_counter()
        # 1.
        step = space.soft_step(centers, rule, before, keep=keep)
        # 2. and 3.
        converged = step.change <= tol
        before = centers, step
        centers = _next(space, rule, step)
        history.append(SoftIteration(step.objective, step.change, time.perf_counter() - started))
        stopped = bool(on_iteration(number, history[-1]))
        if stopped or converged:
            break
        save(UnfinishedSoft(before[0], tuple(history)))
    last = space.soft_step(centers, rule, before, keep=keep, final=True)
    return SoftPartition(rule, centers, last, converged, tuple(history), stopped)


def _next(space: SoftSpace[Centers], rule: Rule, step: SoftStep[Centers]) -> Centers:
    return space.soft_centers(step, rule) if step.centers is None else step.centers


def best_soft_partition(
    space: SoftSpace[Centers],
    first: Sequence[Callable[[], Centers]],
    m: float,
    *,
    theta: float | None,
    report: Callable[[int, int, SoftIteration], object],
    keep: bool,
    checkpoint: Checkpoint | None = None,
    **settings: Any,
) -> SoftPartition[Centers]:
    """Run from every start and keep the lowest objective; then typicalities from there, if `theta` is given.

    The widths are ``nu_c = theta sum w u^m d / sum w u^m`` of the fuzzy run (Krishnapuram & Keller 1993). A run goes on
    where a checkpoint left off.
    """
    checkpoint = checkpoint or Checkpoint()
    classes = (UnfinishedSoft, EndedSoft, SoftIteration, Rule, *space.kept)
    state = checkpoint.load(classes) or {"run": 0, "best": None, "current": None}
    best = None if state["best"] is None else _again(space, state["best"], keep)

    def save(current: UnfinishedSoft[Centers] | None, number: int) -> None:
        if checkpoint.due:
            ended = (
                None if best is None else EndedSoft(best.rule, best.centers, best.converged, best.history, best.stopped)
            )
            checkpoint.save({"run": number, "best": ended, "current": current})

    def run(rule: Rule, start: Callable[[], Centers], number: int) -> SoftPartition[Centers]:
        current = state["current"] if number == state["run"] else None
        return soft_c_means(
            space,
            rule,
            start() if current is None else current,
            keep=keep,
            on_iteration=partial(report, number),
            save=partial(save, number=number),
            **settings,
        )

    for number in range(state["run"], len(first)):
        found = run(Rule(m), first[number], number)
        if best is None or found.last.objective < best.last.objective * (1 - _TIE):
            best = found
        save(None, number + 1)
    assert best is not None
    if theta is None:
        return best
    widths = np.divide(best.last.costs, best.last.totals, out=np.zeros(space.n_clusters), where=best.last.totals > 0)
    from_there = best.centers
    return run(Rule(m, theta * widths), lambda: from_there, len(first))


def _ended(run: SoftPartition[Centers]) -> EndedSoft[Centers]:
    return EndedSoft(run.rule, run.centers, run.converged, run.history, run.stopped)


def _again(space: SoftSpace[Centers], ended: EndedSoft[Centers], keep: bool) -> SoftPartition[Centers]:
    last = space.soft_step(ended.centers, ended.rule, None, keep=keep, final=True)
    return SoftPartition(ended.rule, ended.centers, last, ended.converged, ended.history, ended.stopped)
