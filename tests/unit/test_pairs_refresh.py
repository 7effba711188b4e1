"""The table of releases is made from what an index says, and from nothing else."""

from __future__ import annotations

import tomllib
from typing import Any

from orchestrator.pairs.refresh import table

LINUX, OTHER = "manylinux2014_x86_64", "macosx_10_14_x86_64"


def file(name: str, day: str, needs: str | None = None) -> dict[str, Any]:
    """A file as the index lists it."""
    return {"filename": name, "upload-time": f"{day}T00:00:00Z", "requires-python": needs}


INDEX = {
    "tensorflow": [
        file(f"tensorflow-2.9.1-cp310-cp310-{LINUX}.whl", "2022-05-24"),
        file(f"tensorflow-2.9.1-cp37-cp37m-{LINUX}.whl", "2022-05-23"),
        file(f"tensorflow-2.9.1-cp39-cp39-{OTHER}.whl", "2022-05-22"),
        file(f"tensorflow-2.10.0-cp310-cp310-{LINUX}.whl", "2022-09-06"),
        file(f"tensorflow-2.10.0rc1-cp310-cp310-{LINUX}.whl", "2022-08-06"),
        file(f"tensorflow-1.13.1-cp37-cp37m-{LINUX}.whl", "2019-02-26"),
        file("tensorflow-broken.whl", "2019-02-26"),
    ],
    "tensorflow-cpu": [file(f"tensorflow_cpu-2.9.1-cp37-cp37m-{LINUX}.whl", "2022-05-23")],
    "keras": [
        file("keras-3.13.0-py3-none-any.whl", "2025-12-17", ">=3.11"),
        file("keras-2.9.0.tar.gz", "2022-05-13"),
        file("keras-2.9.0rc0.tar.gz", "2022-04-13"),
        file("keras-2.1.0.tar.gz", "2017-11-13"),
    ],
    "tf-keras": [file("tf_keras-2.16.0-py3-none-any.whl", "2024-03-09", ">=3.9")],
}


def test_releases_by_version_with_their_linux_wheels() -> None:
    """Final releases from the oldest that stackrace runs, in the order of versions."""
    found = tomllib.loads(table(INDEX.__getitem__))
    assert {
        "2.9.1": {"date": "2022-05-23", "pythons": ["3.7", "3.10"], "cpu": True},
        "2.10.0": {"date": "2022-09-06", "pythons": ["3.10"]},
    } == found["tensorflow"]
    assert ["2.9.1", "2.10.0"] == list(found["tensorflow"])


def test_releases_of_keras_with_the_oldest_python() -> None:
    """A release without a word about Python takes the oldest that stackrace runs."""
    found = tomllib.loads(table(INDEX.__getitem__))
    assert {
        "2.9.0": {"date": "2022-05-13", "python": "3.6"},
        "3.13.0": {"date": "2025-12-17", "python": "3.11"},
    } == found["keras"]
    assert {"2.16.0": {"date": "2024-03-09", "python": "3.9"}} == found["tf-keras"]
