"""Workers and uv get the variables that they need, and none that would change what is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.environments import uv
from orchestrator.environments.variables import worker_variables

HOME = Path("/job/home")
SET_ALWAYS = {"HOME", "KERAS_HOME", "PYTHONHASHSEED", "PYTHONNOUSERSITE"}


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "LANG",
        "LC_ALL",
        "TZ",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "OMP_NUM_THREADS",
        "KMP_BLOCKTIME",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "GOTO_NUM_THREADS",
        "TF_CPP_MIN_LOG_LEVEL",
        "TF_XLA_FLAGS",
        "TF_NUM_INTEROP_THREADS",
        "TF_ENABLE_ONEDNN_OPTS",
        "TF_DISABLE_MKL",
        "TF_GPU_THREAD_MODE",
        "TF_CUDNN_DETERMINISTIC",
        "TF_CUDA_PATHS",
        "TF_DETERMINISTIC_OPS",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT",
        "TF_AUTOTUNE_THRESHOLD",
        "TF_LAYOUT_OPTIMIZER",
        "TF_ONEDNN_VERBOSE",
        "TF_INTRA_OP_PARALLELISM",
        "TF_INTER_OP_PARALLELISM",
        "XLA_FLAGS",
        "CUDA_CACHE_PATH",
        "SSL_CERT_FILE",
    ],
)
def test_worker_keeps(name: str) -> None:
    """Threads, devices, locale and libraries are left as the user has them."""
    assert "kept" == worker_variables({name: "kept"}, home=HOME, device="gpu")[name]


@pytest.mark.parametrize(
    "name",
    [
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "VIRTUAL_ENV",
        "KERAS_BACKEND",
        "AWS_SECRET_ACCESS_KEY",
        "TF_VAR_database_password",  # Terraform's, not TensorFlow's
        "TF_TOKEN_app_terraform_io",
        "TF_ENCRYPTION",  # OpenTofu's
        "TF_PASSWORD",
        "TF_INPUT",
        "path",
    ],
)
def test_worker_does_not_keep(name: str) -> None:
    """What would change the interpreter, the backend, or leak, does not reach a worker."""
    assert SET_ALWAYS == set(worker_variables({name: "kept"}, home=HOME, device="gpu"))


def test_worker_has_a_home_of_its_own() -> None:
    """Home, Keras's folder and the hash seed are the job's, whatever the user has."""
    user = {"HOME": "/home/me", "KERAS_HOME": "/home/me/.keras", "PYTHONHASHSEED": "7"}
    assert {
        "HOME": "/job/home",
        "KERAS_HOME": "/job/home/.keras",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
    } == worker_variables(user, home=HOME, device="gpu")


def test_cpu_worker_sees_no_gpu() -> None:
    """A job for the CPU cannot stray to a GPU; one for the GPU keeps the user's choice."""
    user = {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert "-1" == worker_variables(user, home=HOME, device="cpu")["CUDA_VISIBLE_DEVICES"]
    assert "0,1" == worker_variables(user, home=HOME, device="gpu")["CUDA_VISIBLE_DEVICES"]


def test_uv_keeps_the_users_index_and_network() -> None:
    """Indexes, credentials, certificates, proxies and the cache folder reach uv."""
    user = {
        "UV_DEFAULT_INDEX": "https://index/simple",
        "UV_INDEX_MINE_PASSWORD": "secret",
        "UV_CACHE_DIR": "/cache",
        "SSL_CERT_FILE": "/certificates.pem",
        "HTTPS_PROXY": "http://proxy",
        "HOME": "/home/me",
    }
    assert user == uv.variables(user)


def test_uv_does_not_get_what_changes_the_installation() -> None:
    """Another interpreter, another target, constraints and skipped hashes are not for us."""
    names = ("UV_PYTHON", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_CONSTRAINT")
    assert {} == uv.variables(dict.fromkeys((*names, "UV_NO_VERIFY_HASHES", "UV_LINK_MODE"), "x"))


def test_pips_index_is_meant_for_uv_too() -> None:
    """A user who has told only pip where the index is, is understood."""
    user = {"PIP_INDEX_URL": "https://pip/simple", "PIP_CERT": "/pip.pem"}
    found = uv.variables(user)
    assert ("https://pip/simple", "/pip.pem") == (found["UV_DEFAULT_INDEX"], found["SSL_CERT_FILE"])


@pytest.mark.parametrize("name", ["UV_INDEX_URL", "UV_DEFAULT_INDEX"])
def test_uvs_index_wins_over_pips(name: str) -> None:
    """What the user has told uv itself is not overridden."""
    user = {"PIP_INDEX_URL": "https://pip/simple", name: "https://uv/simple"}
    assert {"https://uv/simple"} == {
        value for key, value in uv.variables(user).items() if key.startswith("UV_")
    }
