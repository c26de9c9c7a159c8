"""Quadruped mammals: four kinds of animals, each made of eight cylinders (Gennari, Langley & Fisher 1989)."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import ndtr, ndtri
from sklearn.utils import check_random_state

KINDS = ("dog", "cat", "horse", "giraffe")
PARTS = ("torso", "leg1", "leg2", "leg3", "leg4", "neck", "head", "tail")
ATTRIBUTES = ("locationX", "locationY", "locationZ", "axisX", "axisY", "axisZ", "height", "radius", "texture")
MAMMAL_FEATURES = tuple(f"{part}_{attribute}" for part in PARTS for attribute in ATTRIBUTES)

# The range of every draw, for each kind.
_RANGES = {
    "torso_height": ((22, 28), (15, 22), (50, 60), (60, 72)),
    "torso_radius": ((5.5, 7.5), (2.5, 4.5), (10, 14.5), (12.5, 17)),
    "leg_height": ((10, 15), (4, 9), (36, 44), (58, 70)),
    "leg_radius": ((0.8, 1.2), (0.4, 0.8), (2, 3.5), (2, 4)),
    "leg_axisX": ((0, 1), (0, 1), (0, 0.5), (0, 0.5)),
    "neck_height": ((5, 6), (2, 4), (12, 16), (45, 55)),
    "neck_radius": ((2, 3), (1.5, 2.5), (5, 7), (5, 9)),
    "head_height": ((10, 13), (3, 5), (18, 22), (18, 22)),
    "head_radius": ((2.5, 3.5), (1.5, 2.5), (4, 6), (3.5, 5.5)),
    "head_axisY": ((-1, 1),) * 4,
    "tail_height": ((6, 8), (10, 18), (26, 33), (20, 25)),
    "tail_radius": ((0.2, 0.4), (0.3, 0.7), (1, 2), (0.5, 1.0)),
    "tail_axisY": ((-1, 1),) * 4,
    "tail_axisZ": ((-1, 1), (-1, 1), (-1, 0), (-1, 0)),
    "texture": ((170, 180),) * 4,
}
_SHARED = ("torso_height", "torso_radius", "leg_height", "neck_height", "tail_height")  # drawn once for an animal


def make_mammals(
    n_samples: int = 1000,
    *,
    dtype: DTypeLike = np.float32,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[np.floating], NDArray[np.intp]]:
    """Quadruped mammals: dogs, cats, horses and giraffes in 72 columns, of which 25 are constant.

    Each animal has eight cylinders (torso, four legs, neck, head, tail) with a location, an axis, a height, a radius
    and a texture. Sizes are bell-shaped draws within ranges of the kind. The kinds differ in the length of their legs
    alone; what the set is good for is its size, which is as large as wished.

    Parameters
    ----------
    n_samples : int, default=1000
    dtype : dtype, default=numpy.float32
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, 72)
        Columns part by part (`mercer.datasets.MAMMAL_FEATURES`).
    y : ndarray of shape (n_samples,)
        0 dog, 1 cat, 2 horse, 3 giraffe, with equal probability.

    Examples
    --------
    >>> from mercer.datasets import make_mammals
    >>> X, y = make_mammals(200, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((200, 72), [0, 1, 2, 3])
    """
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, not {n_samples}.")
    rng = check_random_state(random_state)
    y: NDArray[np.intp] = rng.randint(len(KINDS), size=n_samples)
    X = np.zeros((n_samples, len(MAMMAL_FEATURES)), dtype=dtype)

    def put(part: str, **values: NDArray[np.float64] | float) -> None:
        for attribute, value in values.items():
            X[:, MAMMAL_FEATURES.index(f"{part}_{attribute}")] = value

    def draw(quantity: str) -> NDArray[np.float64]:
        return _bell(np.array(_RANGES[quantity], dtype=float)[y], rng)

    H, R, L, N, T = (draw(name) for name in _SHARED)
    upright = y >= KINDS.index("horse")  # the neck rises, and does not only reach forward
    put("torso", axisX=1, height=H, radius=R)
    for leg, (front, side) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1)), start=1):
        slant = draw("leg_axisX") if leg in (1, 4) else 0.0
        put(f"leg{leg}", locationX=front * H / 2, locationY=side * R, locationZ=-R - L / 2, axisX=slant, axisZ=-1)
        put(f"leg{leg}", height=L, radius=draw("leg_radius"))
    rise = np.where(upright, N / np.sqrt(2), 0.0)
    put("neck", locationX=H / 2 + np.where(upright, rise, N) / 2, locationZ=R + rise / 2, axisX=1, axisZ=1)
    put("neck", height=N, radius=draw("neck_radius"))
    put("head", locationX=H / 2 + np.where(upright, rise, N), locationZ=R + rise, axisX=1, axisY=draw("head_axisY"))
    put("head", axisZ=np.where(upright, 0.0, 1.0), height=draw("head_height"), radius=draw("head_radius"))
    put("tail", locationX=T - H, axisX=-1, axisY=draw("tail_axisY"), axisZ=draw("tail_axisZ"))
    put("tail", height=T, radius=draw("tail_radius"))
    for part in PARTS:
        put(part, texture=draw("texture"))
    return X, y


def _bell(bounds: NDArray[np.float64], rng: np.random.RandomState) -> NDArray[np.float64]:
    """Normal about the middle of the range (n, 2) with half its width as standard deviation, within the range."""
    low, high = bounds.T
    place = ndtr(-1.0) + rng.random_sample(len(bounds)) * (ndtr(1.0) - ndtr(-1.0))
    return np.asarray((low + high) / 2 + (high - low) / 2 * ndtri(place))
