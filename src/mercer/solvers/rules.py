"""Rules: from a point's squared distances to the centres to its memberships.

- hard (m = 1): 1 for the nearest centre, the lower of equals;
- fuzzy: ``u_c = 1 / sum_b (d_c / d_b)^(1 / (m - 1))``; they add up to 1;
- possibilistic: ``u_c = 1 / (1 + (d_c / nu_c)^(1 / (m - 1)))``, typicalities, each for itself.

At a distance of zero the exact limit is taken: a point belongs in equal parts to the centres it lies on, and to a
possibilistic cluster of no width only at its centre. Nothing overflows: fuzzy memberships are ratios to the nearest
centre, and powers are taken in the log domain. The compiled core has the same rules for explicit coordinates.

References: Havens, Bezdek & Palaniswami 2011, equations (5) to (7), where d is a squared distance, so that the exponent
is 1 / (m - 1) and not the 2 / (m - 1) printed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Rule:
    """A rule by its fuzzifier, and the widths nu of possibilistic clusters.

    Parameters
    ----------
    m : float
        Fuzzifier above 1, or 1 for the hard rule.
    nu : array of shape (k,), optional
        Squared distance at which a typicality is one half; fuzzy or hard without it.

    Examples
    --------
    >>> Rule(2.0).memberships(np.array([[1.0, 3.0], [0.0, 2.0]]))
    array([[0.75, 0.25],
           [1.  , 0.  ]])
    >>> Rule(2.0, np.array([1.0, 1.0])).memberships(np.array([[1.0, 3.0]]))
    array([[0.5 , 0.25]])
    """

    m: float
    nu: NDArray[np.float64] | None = None

    def memberships(self, squared: NDArray[np.float64]) -> NDArray[np.float64]:
        """Memberships from squared distances, both of shape (n, k); an infinite distance is that to no centre."""
        if self.m == 1:
            return np.asarray(squared.argmin(axis=1)[:, None] == np.arange(squared.shape[1]), dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.nu is not None:
                away = np.log(squared) - np.log(self.nu)
                away[squared == 0] = -np.inf
                return np.asarray(1 / (1 + np.exp(np.minimum(away / (self.m - 1), _LARGEST_EXPONENT))))
            logs = np.log(squared)
            logs -= logs.min(axis=1, keepdims=True)
            logs[np.isnan(logs)] = 0.0  # on the centre: -inf less -inf
        near = np.exp(-logs / (self.m - 1))
        return np.asarray(near / near.sum(axis=1, keepdims=True))

    def weights(self, memberships: NDArray[np.floating], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """W u^m, shape (n, k): what each point gives to each centre."""
        return np.asarray(memberships.astype(np.float64) ** self.m * weight[:, None])

    def costs(
        self, squared: NDArray[np.float64], memberships: NDArray[np.floating], weight: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Sum of w u^m d over the points for each cluster, shape (k,)."""
        given = self.weights(memberships, weight)
        return np.asarray((given * np.where(given > 0, squared, 0.0)).sum(axis=0))

    def spare(self, memberships: NDArray[np.floating], weight: NDArray[np.float64]) -> float:
        """Sum over the clusters of nu sum w (1 - u)^m: what keeps typicalities from vanishing; 0 for other rules."""
        return 0.0 if self.nu is None else float(weight @ ((1.0 - memberships) ** self.m @ self.nu))
