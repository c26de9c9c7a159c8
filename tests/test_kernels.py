"""Kernels: values against the reference, parameters, and the registry that turns strings into kernels."""

import dataclasses
import pickle

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mercer import kernels
from mercer.kernels import KERNELS, Factor, Function, KernelRows, make_kernel

EXAMPLES = {
    "linear": kernels.Linear(),
    "rbf": kernels.RBF(gamma=0.3),
    "laplacian": kernels.Laplacian(gamma=0.2),
    "polynomial": kernels.Polynomial(degree=2, gamma=0.5, coef0=0.5),
    "sigmoid": kernels.Sigmoid(gamma=0.1, coef0=-0.2),
    "cosine": kernels.Cosine(),
}
every_kernel = pytest.mark.parametrize("kernel", EXAMPLES.values(), ids=EXAMPLES)
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
containers = pytest.mark.parametrize(
    "container", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csr_matrix, sparse.csc_array]
)


def numbers(n, d, dtype=np.float64, seed=0, zeros=0.4):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) * (rng.random((n, d)) >= zeros)).astype(dtype)


def expected(kernel, X, Z=None):
    return reference.kernel(kernel.name, X, Z, **dataclasses.asdict(kernel))


def by_python(X, Z, scale=1.0):
    return scale * reference.kernel("rbf", X, Z)


# ---- values -------------------------------------------------------------------------------------------------------


@every_kernel
@dtypes
@containers
def test_values(kernel, dtype, container):
    X, Z = numbers(23, 7, dtype), numbers(40, 7, dtype, seed=1)
    block = kernel(container(X), container(Z))
    assert block.dtype == dtype
    np.testing.assert_allclose(block, expected(kernel, X, Z), rtol=0, atol=60 * np.finfo(dtype).eps)


@every_kernel
@settings(max_examples=20)
@given(n=st.integers(1, 60), m=st.integers(1, 60), d=st.integers(1, 30), seed=st.integers(0, 1000))
def test_shapes(kernel, n, m, d, seed):
    X, Z = numbers(n, d, seed=seed), numbers(m, d, seed=seed + 1)
    np.testing.assert_allclose(kernel(X, Z), expected(kernel, X, Z), rtol=1e-11, atol=1e-11)


@every_kernel
@containers
def test_one_block_is_compared_with_itself(kernel, container):
    X = container(numbers(20, 5))
    assert np.array_equal(kernel(X), kernel(X, X))


@every_kernel
def test_lists_integers_and_mixed_types(kernel):
    X = [[0, 1, 2], [3, 4, 5]]
    assert np.array_equal(kernel(X), kernel(np.array(X, dtype=np.float64)))
    mixed = kernel(np.array(X, dtype=np.float32), np.array(X, dtype=np.float64))
    assert mixed.dtype == np.float64
    assert np.array_equal(mixed, kernel(X))


@every_kernel
def test_dense_and_sparse_can_meet(kernel):
    X, Z = numbers(9, 6), numbers(8, 6, seed=1)
    for left, right in ((sparse.csr_array(X), Z), (X, sparse.csr_array(Z))):
        np.testing.assert_allclose(kernel(left, right), expected(kernel, X, Z), rtol=1e-11, atol=1e-11)


@every_kernel
def test_input_is_not_changed(kernel):
    X = numbers(30, 4) + 100
    untidy = sparse.csr_array((np.ones(4), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3))
    kept, kept_data, kept_indices = X.copy(), untidy.data.copy(), untidy.indices.copy()
    kernel(X), kernel(untidy)
    assert np.array_equal(X, kept)
    assert np.array_equal(untidy.data, kept_data)
    assert np.array_equal(untidy.indices, kept_indices)


@every_kernel
def test_csr_with_repeated_unsorted_and_zero_entries(kernel):
    data, columns, starts = np.array([1.0, 2, 3, 0, 4]), np.array([2, 0, 2, 1, 1]), np.array([0, 3, 5])
    untidy = sparse.csr_array((data, columns, starts), shape=(2, 3))
    np.testing.assert_allclose(kernel(untidy), expected(kernel, untidy.toarray()), rtol=1e-12)


@every_kernel
def test_rows_that_lie_oddly_in_memory(kernel):
    records = np.zeros(6, dtype=[("id", "i1"), ("x", "f8", (3,))])
    records["x"] = numbers(6, 3)
    wide = np.full((12, 9), np.nan)
    wide[::2, 1:7:2] = records["x"]
    values = kernel(np.ascontiguousarray(records["x"]))
    assert np.array_equal(kernel(records["x"]), values)
    assert np.array_equal(kernel(wide[::2, 1:7:2]), values)
    assert np.array_equal(kernel(records["x"][::-1])[::-1, ::-1], values)


@every_kernel
def test_columns_must_match(kernel):
    with pytest.raises(ValueError, match="X has 3 columns but Z has 4"):
        kernel(np.ones((2, 3)), np.ones((2, 4)))


@every_kernel
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_input_must_be_finite(kernel, bad):
    with pytest.raises(ValueError, match="Input X contains"):
        kernel(np.array([[1.0, bad]]))


@every_kernel
@dtypes
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_diagonal_is_that_of_the_block(kernel, dtype, container):
    X = numbers(50, 9, dtype)
    X[7] = 0
    diagonal = kernel.diagonal(kernel.rows(container(X)))
    assert diagonal.dtype == np.float64
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(diagonal, expected(kernel, X).diagonal(), rtol=20 * eps, atol=20 * eps)
    np.testing.assert_allclose(diagonal, kernel(container(X)).diagonal(), rtol=60 * eps, atol=60 * eps)


@pytest.mark.parametrize("away", [1e3, 1e4, -1e5])
@pytest.mark.parametrize("gamma", [0.05, 2.0])
def test_rbf_far_from_the_origin(away, gamma):
    """float32 holds these points to 1e-8 |away|; the distances must not lose more than that."""
    X = (numbers(60, 10) + away).astype(np.float32)
    error = np.abs(kernels.RBF(gamma=gamma)(X) - reference.kernel("rbf", X, gamma=gamma)).max()
    assert error < 2e-6 * max(1, gamma)


def test_rbf_between_two_blocks_far_from_the_origin():
    X, Z = ((numbers(40, 10, seed=seed) + 1e4).astype(np.float32) for seed in (0, 1))
    error = np.abs(kernels.RBF(gamma=0.1)(X, Z) - reference.kernel("rbf", X, Z, gamma=0.1)).max()
    assert error < 2e-6


@pytest.mark.parametrize("kernel", [EXAMPLES["rbf"], EXAMPLES["laplacian"], EXAMPLES["cosine"]], ids=lambda k: k.name)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_similarity_never_exceeds_one(kernel, container):
    X = (numbers(50, 200) * 30).astype(np.float32)
    assert kernel(container(np.vstack([X, X]))).max() <= 1 + 4 * np.finfo(np.float32).eps


@pytest.mark.parametrize("kernel", [EXAMPLES["rbf"], EXAMPLES["laplacian"]], ids=lambda k: k.name)
def test_norms_that_overflow_are_an_error(kernel):
    """Otherwise infinity minus infinity would pass for a distance of zero."""
    X = np.array([[3e38, 3e38], [-3e38, 0], [1, 1]], dtype=np.float32)
    with pytest.raises(ValueError, match="too large for float32"):
        kernel(X)
    assert np.array_equal(kernel(X.astype(np.float64)), np.eye(3))


# ---- prepared rows ------------------------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_slices_and_taken_rows(kernel, container):
    X = numbers(40, 6) + 10
    rows = kernel.rows(container(X))
    block, panels = kernel(container(X)), kernel.panels(rows)
    for part, indices in ((rows.slice(slice(5, 17)), slice(5, 17)), (rows.take(np.array([3, 30, 3])), [3, 30, 3])):
        out = np.empty((part.n, rows.n))
        kernel.block(part, panels, out)
        assert np.array_equal(out, block[indices])


@every_kernel
def test_rows_like_others_are_prepared_in_the_same_way(kernel):
    X, Z = numbers(30, 6) + 50, numbers(20, 6, seed=1)
    rows = kernel.rows(X)
    out = np.empty((20, 30))
    kernel.block(kernel.rows(Z, like=rows), kernel.panels(rows), out)
    np.testing.assert_allclose(out, expected(kernel, Z, X), rtol=1e-10, atol=1e-12)


def test_rows_can_be_pickled():
    rows = kernels.RBF().rows(numbers(10, 3))
    copy = pickle.loads(pickle.dumps(rows))
    assert isinstance(copy, KernelRows)
    assert np.array_equal(copy.norms, rows.norms)
    assert (copy.core.n, copy.core.d) == (10, 3)


@pytest.mark.parametrize("kernel", [*EXAMPLES.values(), Function(by_python)], ids=lambda kernel: kernel.name)
@dtypes
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_product_is_the_block_times_the_factor(kernel, dtype, container):
    X, Z, V = numbers(30, 6, dtype), numbers(300, 6, dtype, seed=1), numbers(300, 4, dtype, seed=2)
    right = kernel.rows(container(Z))
    factor, out = Factor(V), np.empty((30, 4), dtype=dtype)
    for _ in range(2):  # the second time with what was packed the first
        kernel.product(kernel.rows(container(X), like=right), kernel.panels(right), factor, out)
        block = kernel(container(X), container(Z)).astype(np.float64)
        bound = 100 * float(np.finfo(dtype).eps) * np.linalg.norm(block, axis=1)[:, None] * np.linalg.norm(V, axis=0)
        assert (np.abs(out - block @ V) <= bound).all()


# ---- definiteness -------------------------------------------------------------------------------------------------


@every_kernel
@settings(max_examples=30)
@given(n=st.integers(2, 25), d=st.integers(1, 8), seed=st.integers(0, 1000))
def test_kernels_called_positive_semidefinite_are(kernel, n, d, seed):
    lowest = np.linalg.eigvalsh(kernel(numbers(n, d, seed=seed)))[0]
    assert lowest >= -1e-10 or not kernel.positive_semidefinite


INDEFINITE = [kernels.Sigmoid(gamma=0.1, coef0=-0.2), kernels.Polynomial(degree=2, gamma=1, coef0=-2)]


@pytest.mark.parametrize("kernel", INDEFINITE, ids=lambda k: k.name)
def test_kernels_not_called_positive_semidefinite_are_not(kernel):
    assert not kernel.positive_semidefinite
    assert np.linalg.eigvalsh(kernel(numbers(25, 8)))[0] < -1e-3


def test_what_is_not_known_is_none():
    assert kernels.Polynomial(coef0=-1).positive_semidefinite is None
    assert Function(by_python).positive_semidefinite is None
    assert kernels.Polynomial(coef0=0).positive_semidefinite is True


# ---- parameters ---------------------------------------------------------------------------------------------------

OUT_OF_RANGE = [
    *((kind, {"gamma": gamma}) for kind in ("rbf", "laplacian", "polynomial", "sigmoid") for gamma in (0, -1.0)),
    *((kind, {"gamma": gamma}) for kind in ("rbf", "polynomial") for gamma in (np.nan, np.inf)),
    *((kind, {"coef0": coef0}) for kind in ("polynomial", "sigmoid") for coef0 in (np.nan, -np.inf)),
    *(("polynomial", {"degree": degree}) for degree in (0, -3, 1001)),
]
OF_THE_WRONG_TYPE = [
    *(
        (kind, {"gamma": gamma})
        for kind in ("rbf", "laplacian", "polynomial", "sigmoid")
        for gamma in (True, "1", None)
    ),
    *((kind, {"coef0": coef0}) for kind in ("polynomial", "sigmoid") for coef0 in (False, "1", 1j)),
    *(("polynomial", {"degree": degree}) for degree in (2.0, True, "2", None)),
]


@pytest.mark.parametrize(("name", "parameter"), OUT_OF_RANGE)
def test_parameter_out_of_range(name, parameter):
    with pytest.raises(ValueError, match=next(iter(parameter))):
        KERNELS[name](**parameter)


@pytest.mark.parametrize(("name", "parameter"), OF_THE_WRONG_TYPE)
def test_parameter_of_the_wrong_type(name, parameter):
    with pytest.raises(TypeError, match=next(iter(parameter))):
        KERNELS[name](**parameter)


def test_parameters_become_plain_numbers():
    kernel = kernels.Polynomial(degree=np.int64(2), gamma=np.float32(0.5), coef0=1)
    assert repr(kernel) == "Polynomial(degree=2, gamma=0.5, coef0=1.0)"
    assert [type(value) for value in dataclasses.astuple(kernel)] == [int, float, float]


@every_kernel
def test_kernels_are_frozen_values(kernel):
    name = next(iter(dataclasses.asdict(kernel)), "gamma")
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(kernel, name, 2.0)
    twin = type(kernel)(**dataclasses.asdict(kernel))
    assert (twin, hash(twin)) == (kernel, hash(kernel))
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert repr(kernel).startswith(type(kernel).__name__ + "(")


@every_kernel
def test_parameters_matter(kernel):
    X = numbers(10, 4)
    for parameter, value in dataclasses.asdict(kernel).items():
        assert not np.allclose(dataclasses.replace(kernel, **{parameter: value + 1})(X), kernel(X))


# ---- functions ----------------------------------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_function(dtype, container):
    X, Z = numbers(9, 4, dtype), numbers(300, 4, dtype, seed=1)
    kernel = Function(by_python, {"scale": 3.0})
    block = kernel(container(X), container(Z))
    assert block.dtype == dtype
    np.testing.assert_allclose(block, 3 * reference.kernel("rbf", X, Z), rtol=2 * np.finfo(dtype).eps)
    np.testing.assert_allclose(kernel.diagonal(kernel.rows(container(Z))), 3, rtol=np.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (np.ones(3), ValueError, r"returned shape \(3,\).*must return \(3, 3\)"),
        (np.ones((3, 2)), ValueError, r"returned shape \(3, 2\)"),
        (1.0, ValueError, "blocks of rows, not on pairs"),
        (np.full((3, 3), np.nan), ValueError, "NaN or infinity"),
        (np.full((3, 3), np.inf), ValueError, "NaN or infinity"),
        (np.ones((3, 3), dtype=complex), TypeError, "complex128, not real numbers"),
        (np.full((3, 3), "a"), TypeError, "not real numbers"),
        (None, ValueError, "returned shape"),
    ],
)
def test_what_a_function_must_return(returned, error, message):
    def similarity(X, Z):
        return returned

    with pytest.raises(error, match=message) as caught:
        Function(similarity)(np.ones((3, 2)))
    assert "similarity" in str(caught.value)


def test_errors_of_a_function_are_its_own():
    with pytest.raises(ZeroDivisionError):
        Function(lambda X, Z: 1 / 0)(np.ones((3, 2)))


# ---- the registry -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_every_name(name):
    kernel = make_kernel(name, numbers(20, 3), gamma=0.5, degree=4, coef0=2.0)
    given_parameters = {"gamma": 0.5, "degree": 4, "coef0": 2.0}
    assert type(kernel) is KERNELS[name]
    assert kernel.name == name
    assert dataclasses.asdict(kernel).items() <= given_parameters.items()


def test_aliases():
    X = numbers(20, 3)
    assert make_kernel("poly", X, gamma=1.0) == make_kernel("polynomial", X, gamma=1.0)
    assert make_kernel("gaussian", X, gamma=1.0) == kernels.RBF(gamma=1.0)


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'rbff' is not known.*cosine, laplacian, linear"):
        make_kernel("rbff", numbers(20, 3))
    assert kernels.names() == sorted(KERNELS)


@pytest.mark.parametrize("kernel", [None, 3, ["rbf"]])
def test_what_is_not_a_kernel(kernel):
    with pytest.raises(TypeError, match="kernel must be"):
        make_kernel(kernel, numbers(20, 3))


@every_kernel
def test_an_object_is_used_as_it_is(kernel):
    assert make_kernel(kernel, numbers(20, 3)) is kernel


@pytest.mark.parametrize("gamma", [0.5, "scale"])
def test_an_object_owns_its_gamma(gamma):
    with pytest.raises(ValueError, match="owns its parameters"):
        make_kernel(kernels.RBF(gamma=1.0), numbers(20, 3), gamma=gamma)


def test_a_function_takes_its_parameters():
    parameters = {"scale": 2.0}
    kernel = make_kernel(by_python, numbers(20, 3), kernel_params=parameters)
    parameters["scale"] = 5.0
    assert kernel([[0.0]]) == 2.0


@pytest.mark.parametrize("kernel", ["rbf", kernels.RBF()])
def test_only_functions_take_parameters(kernel):
    with pytest.raises(ValueError, match="kernel_params"):
        make_kernel(kernel, numbers(20, 3), kernel_params={"gamma": 1.0})


@pytest.mark.parametrize("gamma", ["sclae", True, -1.0, None])
def test_gamma_of_a_name_is_checked(gamma):
    with pytest.raises((TypeError, ValueError), match="gamma"):
        make_kernel("rbf", numbers(20, 3), gamma=gamma)


def test_weights_reach_the_choice_of_gamma():
    X, weight = numbers(20, 3), np.arange(20.0)
    weighted = make_kernel("rbf", X, sample_weight=weight)
    assert weighted == make_kernel("rbf", np.repeat(X, np.arange(20), axis=0))
    assert weighted != make_kernel("rbf", X)
