"""The certificate is below every partition, and absent where it would not be."""

import itertools
import pickle

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import KernelKMeans, kernels
from mercer.engine.threads import Threads
from mercer.features import CentroidEmbedding, KernelEigen, RandomFourier, TaylorFeatures
from mercer.solvers.certificate import certify
from mercer.sources import Sample, content_hash


def best_of_all(K, k, weight):
    """Lowest objective over all partitions into at most k clusters."""
    n = len(K)
    labellings = (np.array((0, *rest)) for rest in itertools.product(range(k), repeat=n - 1))
    return min(reference.kernel_objective(K, labels, weight) for labels in labellings)


@settings(deadline=None, max_examples=25)
@given(
    n=st.integers(2, 8),
    k=st.integers(1, 3),
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from([kernels.RBF(0.5), kernels.Laplacian(0.3), kernels.Polynomial(2), kernels.Linear()]),
)
def test_no_partition_is_below_the_bound(n, k, seed, kernel):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(n, 3)), rng.integers(1, 4, n).astype(float)
    optimum = best_of_all(kernel(X), k, weight)
    with Threads(1) as pool:
        found = certify(kernel, Sample(X, weight, content_hash(X)), optimum, k, 0, pool)
    assert found.lower_bound <= optimum + 1e-9 * max(1.0, optimum)


@pytest.mark.parametrize("landmarks", [5, 20, 80])
def test_fewer_landmarks_give_a_lower_bound(landmarks, monkeypatch):
    from mercer.solvers import certificate

    monkeypatch.setattr(certificate, "LANDMARKS", landmarks)
    X = np.random.default_rng(0).normal(size=(80, 2))
    best = min(KernelKMeans(3, gamma=0.5, random_state=seed, tol=0).fit(X).inertia_ for seed in range(30))
    bound = KernelKMeans(3, gamma=0.5, random_state=0).fit(X).certificate_.lower_bound
    assert 0 < bound <= best
    if landmarks == 80:
        assert bound > 0.5 * best


def test_well_separated_groups_are_certified():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(10 * c, 0.1, size=(40, 2)) for c in range(3)])
    for method in ("exact", "nystroem", KernelEigen(20), TaylorFeatures(2)):
        model = KernelKMeans(3, gamma=0.05, method=method, random_state=0).fit(X)
        found = model.certificate_
        assert found.objective == model.inertia_
        assert found.lower_bound <= found.objective
        if method != "nystroem" and not isinstance(method, TaylorFeatures):
            assert found.ratio < 2.0
            assert f"at most {found.ratio:.3f} times" in str(found)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"kernel": "sigmoid", "gamma": 0.01}, "is not positive semidefinite"),
        ({"kernel": lambda A, B: A @ B.T}, "is not known to be positive semidefinite"),
        ({"method": RandomFourier(50)}, "RandomFourier does not bound"),
        ({"method": CentroidEmbedding(20, 30)}, "CentroidEmbedding does not bound"),
    ],
    ids=str,
)
def test_where_no_bound_is_valid_it_says_so(parameters, reason):
    X = np.random.default_rng(2).normal(size=(60, 3))
    found = KernelKMeans(2, random_state=0, **parameters).fit(X).certificate_
    assert found.lower_bound is None
    assert found.ratio is None
    assert reason in str(found)


def test_a_given_kernel_matrix_and_a_pickled_model_have_none():
    X = np.random.default_rng(3).normal(size=(60, 3))
    given = KernelKMeans(2, kernel="precomputed", random_state=0).fit(kernels.RBF(0.3)(X))
    assert "not known" in given.certificate_.reason
    model = KernelKMeans(2, gamma=0.3, random_state=0).fit(X)
    with pytest.raises(AttributeError, match="fit again"):
        _ = pickle.loads(pickle.dumps(model)).certificate_
    asked = model.certificate_
    assert pickle.loads(pickle.dumps(model)).certificate_ == asked
