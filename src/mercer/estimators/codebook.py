"""A classifier of code books: each class is a few hundred representatives found by kernel k-means.

Time of a fit: that of kernel k-means on each class alone, so the sum of n_class^2 / 2 kernel values; of a prediction, a
kernel value for each training row (centroids) or each representative (medoids). Memory: the training rows once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from mercer.engine.memory import format_bytes, parse_bytes
from mercer.engine.threads import Threads
from mercer.engine.warn import warn_user
from mercer.estimators import checks
from mercer.estimators.base import KernelPrecisionWarning
from mercer.estimators.kernel_kmeans import KernelKMeans
from mercer.estimators.representatives import (
    CALIBRATED,
    Change,
    Codebook,
    as_they_are,
    class_distances,
    left_out,
    likeliest_scale,
    points_alone,
    softmax,
)
from mercer.estimators.settings import Data, kernel_of
from mercer.features import IndefiniteKernelWarning
from mercer.gram import Disk, Moves
from mercer.kernels import Kernel, KernelScaleWarning, Precomputed, warn_if_uninformative
from mercer.solvers.implicit import ImplicitModel
from mercer.sources import (
    Matrix,
    canonical,
    check_weights,
    content_hash,
    is_sparse,
    require_finite,
)

_SEARCHED = 64  # representatives: in larger code books local minima hardly count, and a search costs most
_INITS = ("k-means++", "random", "points")
_LOOKED_AT = 16  # rows to calibrate with, to see whether the kernel says anything


class CodebookClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier whose classes are code books, found by kernel k-means on each class alone.

    A row belongs to the class whose `n_neighbors` nearest representatives are nearest on average, in the feature space
    of the kernel.

    Parameters
    ----------
    codebook_size : int, default=512
        Representatives of each class; of a class with fewer distinct rows, those rows.
    n_neighbors : int, default=3
        Number of nearest representatives of a class whose distances are averaged. It is read when predicting, so
        `set_params` changes it without a new fit, and `score_neighbors` tries many at once.
    representatives : {"centroid", "medoid"}, default="centroid"
        "centroid": the means of the clusters in feature space, which are implicit, so that predictions go through all
        training rows. "medoid": the training row of each cluster that is nearest to its mean (the paper's
        pseudo-centre); predictions are as many times cheaper as clusters are large, and less accurate. Also read when
        predicting.
    kernel : str, kernel object or callable, default="rbf"
        As in `KernelKMeans`, but not "precomputed": distances need k(x, x) of new rows.
    gamma : float or {"auto", "scale", "median"}, default="auto"
        Chosen from the rows of all classes together.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=1
        Of the polynomial and sigmoid kernels.
    kernel_params : dict, optional
        Keyword arguments for a callable kernel.
    storage : str or Disk, default="auto"
        Where the kernel matrix of a class is, as in `KernelKMeans`; each class has a folder in that of a `Disk`.
    init : {"k-means++", "random", "points"}, default="k-means++"
        First clusters, as in `KernelKMeans`.
    n_init : int or "auto", default="auto"
        Runs of kernel k-means for each class. "auto" is one run for more than 64 representatives, where a longer search
        takes most of the time and brings no better classifier; for fewer it is what it is in `KernelKMeans`.
    max_iter : int, default=300
        Iterations of one run.
    tol : float, default=1e-6
        A run ends when an iteration lowers its objective by no more than this share of it.
    memory_limit : int or str, optional
        Bytes (or for example "2GB") that `fit` may allocate beyond its input, with the copies of rows that it keeps.
    n_jobs : int, optional
        Threads; None and -1 are all cores. Results are the same bits for any number.
    random_state : int, RandomState or None
        Draws depend on the content of the rows, not on their order.
    verbose : int, default=0
        1 prints a line for each class and each run of kernel k-means, 2 also for each iteration.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Classes of the rows of positive weight, in order.
    codebooks_ : tuple of Codebook
        The representatives of each class: `size`, `weights`, `medoid_indices` (positions of training rows), the `rows`
        of the class and their `labels`, `inertia`, `n_iter`, `plan`, and the models `centroids` and `medoids`.
    kernel_ : Kernel
        The kernel object in use, the same for all classes.
    gamma_ : float or None
        gamma in use; None for a kernel that has none.
    n_iter_ : int
        Largest number of iterations of any class.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        If X has string column names.

    Notes
    -----
    A fitted classifier holds the training rows, which its implicit centroids are made of.

    Probabilities are a softmax of the distances to the classes, whose scale is the most likely one for up to 2,000
    training rows, each left out of its own representative. It is found by the first `predict_proba` for these
    `n_neighbors` and `representatives`, which takes as long as the prediction of those rows.

    References
    ----------
    R. Zhang, A. Rudnicky, "A large scale clustering scheme for kernel k-means", ICPR 2002, section 5.

    J. Platt, "Probabilistic outputs for support vector machines", Advances in large margin classifiers, 1999.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import CodebookClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CodebookClassifier(20, random_state=0).fit(X[:900], y[:900])
    >>> model.predict(X[:3]), model.codebooks_[0].size
    (array([0, 1, 2]), 20)

    A grid search over `n_neighbors` that does not fit again:

    >>> numbers = np.array([1, 2, 3, 5, 8])
    >>> accuracy = model.score_neighbors(X[900:1300], y[900:1300], numbers)
    >>> model = model.set_params(n_neighbors=int(numbers[accuracy.argmax()]))
    >>> model.score(X[1300:], y[1300:]) > 0.9
    True
    """

    def __init__(
        self,
        codebook_size: int = 512,
        *,
        n_neighbors: int = 3,
        representatives: str = "centroid",
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        storage: str | Disk = "auto",
        init: str = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-6,
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.codebook_size = codebook_size
        self.n_neighbors = n_neighbors
        self.representatives = representatives
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.storage = storage
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ---- fitting ------------------------------------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the code book of each class.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Classes: numbers or strings.
        sample_weight : array of shape (n_samples,), optional
            A weight of 3 counts as three copies of the row, a weight of 0 as none: a class whose rows all weigh nothing
            is not among `classes_`.

        Returns
        -------
        self
        """
        rows, true = self._validate(X, y)
        check_classification_targets(true)
        self._check_parameters()
        data = self._data(rows, check_weights(sample_weight, rows.shape[0]))
        heavy = np.flatnonzero(data.weight)
        classes, of = np.unique(true[heavy], return_inverse=True)
        members = [heavy[of == number] for number in range(len(classes))]
        draws = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=len(classes) + 1)
        seed, *seeds = draws.tolist()
        books = self._code_books(data, classes, members, seeds)
        self._left_out = left_out(data, books, seed)
        self._scales: dict[tuple[int, str], float] = {}
        self.classes_, self.codebooks_ = classes, tuple(books)
        self.kernel_, self.gamma_ = data.kernel, getattr(data.kernel, "gamma", None)
        self.n_iter_ = max(book.n_iter for book in books)
        _look_at(data.kernel, self._left_out.X)
        return self

    def _validate(self, X: ArrayLike, y: Any = "no_validation", *, reset: bool = True) -> Any:
        """Rows as they are worked on; with classes, both."""
        kinds = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        checked = validate_data(self, X, y, reset=reset, ensure_all_finite=False, **kinds)
        data, *classes = checked if isinstance(checked, tuple) else (checked,)
        require_finite(data, self.n_jobs, type(self).__name__)
        return (canonical(data), *classes) if classes else canonical(data)

    def _check_parameters(self) -> None:
        checks.integer("codebook_size", self.codebook_size, 1)
        self._check_neighbors()
        if isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed"):
            raise ValueError(
                "kernel='precomputed' gives no k(x, x) of new rows, which distances to code books need: pass the rows "
                "with a kernel by name, a mercer.kernels object or a callable"
            )
        if not isinstance(self.init, str):
            raise TypeError(
                f"init must be one of {_INITS}, since each class has clusters of its own; got {self.init!r}"
            )
        checks.choice("init", self.init, _INITS)

    def _check_neighbors(self) -> None:
        checks.integer("n_neighbors", self.n_neighbors, 1)
        checks.choice("representatives", self.representatives, ("centroid", "medoid"))

    def _data(self, X: Matrix, weight: NDArray[np.float64]) -> Data:
        """Rows with their hashes and the kernel of all classes."""
        with Threads(self.n_jobs) as pool:
            keys = content_hash(X, pool)
        kernel = kernel_of(self, X, weight, keys)
        return Data(X, weight, keys, kernel)

    def _code_books(
        self,
        data: Data,
        classes: NDArray[Any],
        members: Iterable[NDArray[np.intp]],
        seeds: Iterable[int],
    ) -> list[Codebook]:
        """Code book of each class, from the rows in `members`."""
        books, said = list[Codebook](), list[tuple[Any, warnings.WarningMessage]]()
        limit = self._left_beside(data.X, len(classes))
        for number, (label, rows, seed) in enumerate(zip(classes, members, seeds, strict=True)):
            rows = rows[np.argsort(data.keys[rows], kind="stable")]  # the same bits whatever the order of the rows
            clusters = self._kernel_k_means(data.kernel, data.keys[rows], seed, limit)
            clusters.storage = self._storage(number)
            if self.verbose:
                print(f"class {label}: {clusters.n_clusters} representatives of {len(rows)} rows")
            weight = data.weight[rows]
            said += [(label, warning) for warning in _fit_quietly(clusters, label, data.X[rows], weight)]
            books.append(code_book(label, clusters, rows, weight))
        _repeat(said)
        return books

    def _storage(self, number: int) -> str | Disk:
        """Where the kernel matrix of a class is: in a folder of its own."""
        if isinstance(self.storage, Disk) and self.storage.folder is not None:
            return replace(self.storage, folder=Path(self.storage.folder) / f"class-{number}")
        return self.storage

    def _left_beside(self, X: Matrix, n_classes: int) -> int | None:
        """What the memory limit leaves for one fit of kernel k-means beside the rows that are kept."""
        limit, n = parse_bytes(self.memory_limit), X.shape[0]
        if limit is None:
            return None
        given: int = sum(part.nbytes for part in ((X.data, X.indices, X.indptr) if is_sparse(X) else (X,)))
        kept: int = given * (n + min(n, n_classes * self.codebook_size) + min(n, CALIBRATED)) // n
        if limit <= kept:
            raise MemoryError(
                f"Code books keep the training rows, with medoids and rows to calibrate: {format_bytes(kept)}, and "
                f"memory_limit allows {format_bytes(limit)}. Allow more than that, or use fewer rows."
            )
        return limit - kept

    def _kernel_k_means(self, kernel: Kernel, keys: NDArray[np.uint64], seed: int, limit: int | None) -> KernelKMeans:
        """Kernel k-means for a class whose rows have these keys."""
        contents, copies = np.unique(keys, return_inverse=True)
        size = min(self.codebook_size, len(contents))
        once = self.n_init == "auto" and size > _SEARCHED
        return KernelKMeans(
            size,
            kernel=kernel,
            method="exact",
            init=copies if size == len(contents) else self.init,  # every row for itself: nothing to search for
            n_init=1 if once else self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            memory_limit=limit,
            n_jobs=self.n_jobs,
            random_state=seed,
            verbose=self.verbose,
        )

    # ---- new points ----------------------------------------------------------------------------------------------

    def _new(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        self._check_neighbors()
        return self._validate(X, reset=False)

    @property
    def _models(self) -> list[ImplicitModel]:
        """What rows are compared with, of each class."""
        return [getattr(book, f"{self.representatives}s") for book in self.codebooks_]

    def _distances(self, X: Matrix, change: Change = as_they_are) -> NDArray[np.float64]:
        """Distances to the classes, shape (n, n_classes)."""
        with Threads(self.n_jobs) as pool:
            return class_distances(self._models, X, np.array([self.n_neighbors]), pool, lambda means: means[0], change)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Nearest class of each row of `X`; the first of `classes_` of those equally near.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        labels : array of shape (n,)
        """
        nearest = self._distances(self._new(X)).argmin(axis=1)
        return np.asarray(self.classes_[nearest])

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Minus the distances to the classes, shape (n, n_classes).

        For two classes how much nearer the second is, shape (n,): positive where it is predicted.
        """
        distances = self._distances(self._new(X))
        return distances[:, 0] - distances[:, 1] if len(self.classes_) == 2 else -distances

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes, shape (n, n_classes): a softmax of the distances, with a calibrated scale."""
        return softmax(self._distances(self._new(X)), self._scale())

    def _scale(self) -> float:
        """Scale of the softmax for the present parameters, found when first needed."""
        key = (self.n_neighbors, self.representatives)
        if key not in self._scales:
            rows = self._left_out
            change = partial(rows.leave_out, getattr(rows, f"{self.representatives}s"))
            distances = self._distances(rows.X, change)
            self._scales[key] = likeliest_scale(distances, rows.of, rows.weight)
        return self._scales[key]

    def score_neighbors(
        self, X: ArrayLike, y: ArrayLike, n_neighbors: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Accuracy for each of several values of `n_neighbors`, from one pass over the distances.

        It is what `score` gives after `set_params` with each of them: a grid search without fitting again, and without
        computing distances again.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)
        y : array of shape (n,)
        n_neighbors : int or sequence of int
        sample_weight : array of shape (n,), optional

        Returns
        -------
        accuracy : array of shape (len(n_neighbors),)
        """
        data = self._new(X)
        true = column_or_1d(y)
        check_consistent_length(data, true)
        weight = check_weights(sample_weight, data.shape[0])
        numbers = np.atleast_1d(np.asarray(n_neighbors, dtype=object)).ravel()
        counts = np.array([checks.integer("n_neighbors", number, 1) for number in numbers], dtype=np.intp)
        if not len(counts):
            raise ValueError("n_neighbors is empty: give at least one number of neighbours")
        with Threads(self.n_jobs) as pool:
            found = class_distances(self._models, data, counts, pool, lambda means: means.argmin(axis=2).T)
        return np.asarray(np.average(self.classes_[found] == true[:, None], axis=0, weights=weight))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there are code books: a fit that was refused leaves none."""
        return hasattr(self, "codebooks_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


# ---- one class ------------------------------------------------------------------------------------------------------


def code_book(label: Any, clusters: KernelKMeans, rows: NDArray[np.intp], weight: NDArray[np.float64]) -> Codebook:
    """Make a code book of the clusters of one class.

    Parameters
    ----------
    label : object
    clusters : KernelKMeans
        Fitted to the rows of the class.
    rows : array of shape (n,)
        Where these are among all rows.
    weight : array of shape (n,)
    """
    model, filled = clusters._model, clusters.medoid_indices_ >= 0
    assert isinstance(model, ImplicitModel)
    labels = (np.cumsum(filled) - 1)[clusters.labels_].astype(np.int32)  # an empty cluster is no entry
    members = Moves.between(None, labels, weight)
    medoids = clusters.medoid_indices_[filled]
    return Codebook(
        label=label,
        centroids=replace(model, members=members, scale=model.scale[filled], offset=model.offset[filled]),
        medoids=points_alone(model, medoids),
        rows=rows,
        labels=labels,
        medoid_indices=rows[medoids],
        weights=np.bincount(labels, weights=weight).astype(np.float64, copy=False),
        inertia=clusters.inertia_,
        n_iter=clusters.n_iter_,
        plan=clusters.plan_,
    )


# ---- what is said of a fit ------------------------------------------------------------------------------------------


# Rows of one class may look alike: rows of all classes are looked at. And a start may be looked for in a map that drops
# a part of an indefinite kernel.
_OF_NO_MATTER = (KernelScaleWarning, KernelPrecisionWarning, IndefiniteKernelWarning)


def _look_at(kernel: Kernel, X: Matrix) -> None:
    """Warn if the kernel says nothing of the rows of all classes."""
    if X.shape[0] > 1:
        few = np.arange(min(X.shape[0], _LOOKED_AT))
        warn_if_uninformative(kernel, kernel(X, X[few]), kernel.diagonal(kernel.rows(X)), few, X)


def _fit_quietly(
    clusters: KernelKMeans, label: Any, X: Matrix, weight: NDArray[np.float64]
) -> Iterable[warnings.WarningMessage]:
    """Fit one class, and return those warnings that matter for a code book."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for category in _OF_NO_MATTER:
            warnings.simplefilter("ignore", category)
        try:
            clusters.fit(X, sample_weight=weight)
        except MemoryError as error:
            raise MemoryError(f"Code book of class {label}, beside the rows that are kept: {error}") from error
    if (clusters.medoid_indices_ >= 0).all():
        return said
    return [warning for warning in said if warning.category is not ConvergenceWarning]  # fewer entries are no harm


def _repeat(said: list[tuple[Any, warnings.WarningMessage]]) -> None:
    """Warn once for each kind of warning, with the classes that it came from."""
    for category in dict.fromkeys(warning.category for _, warning in said):
        labels = [str(label) for label, warning in said if warning.category is category]
        first = next(warning for _, warning in said if warning.category is category)
        warn_user(f"Code books of {', '.join(dict.fromkeys(labels))}: {first.message}", category)
