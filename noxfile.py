# /// script
# dependencies = ["nox[uv]>=2025.5.1"]
# ///
"""The front door: `nox -s bench-tf114 bench-tf20` races two environments, `nox -l` is the menu."""

from __future__ import annotations

import os
import sys

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv"
nox.options.sessions = ["lint", "tests"]
# A session without its interpreter must not pass as a session that succeeded.
nox.options.error_on_missing_interpreters = True

ROWS = nox.project.load_toml("orchestrator/resources/matrix.toml")
# The Python that runs nox, when the host side works on it; else one that uv finds or fetches.
PYTHON = None if sys.version_info >= (3, 11) else "3.12"

registered: list[str] = []


def bench(identifier: str, title: str) -> None:
    """Define the session that enters one environment for the race."""

    def session(session: nox.Session) -> None:
        registered.append(identifier)
        session.notify("race", session.posargs)

    session.__doc__ = f"Race {title} against the other bench sessions named."
    nox.session(name=f"bench-{identifier}", venv_backend="none", tags=["bench"])(session)


NAMES = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch", "keras": "Keras"}
for row_identifier, row in ROWS.items():
    parts = [f"{name} {row[key]}" for key, name in NAMES.items() if row.get(key)]
    bench(row_identifier, " + ".join(parts))


@nox.session(python=PYTHON, default=False)
def race(session: nox.Session) -> None:
    """Race what the bench sessions entered; alone: -- --resume RUN, or ENV ..."""
    _stackrace(session, "run", *registered)


@nox.session(python=PYTHON, default=False)
def report(session: nox.Session) -> None:
    """Write and print the report on recorded runs: -- [RUN ...]; the newest by default."""
    _stackrace(session, "report")


@nox.session(python=PYTHON)
def tests(session: nox.Session) -> None:
    """Run the tests; -- ARGUMENTS go to pytest. What a test needs and does not find, it skips."""
    session.install("--require-hashes", "-r", "requirements-dev.txt")
    if session.posargs:
        session.run("pytest", *session.posargs)
        return
    session.run("pytest", "-m", "not real_tensorflow", "-n", "auto")
    # A file shares its containers and its daemon, so each runs in one process.
    real = ("-n", "auto", "--dist", "loadfile")
    session.run("pytest", "-m", "real_tensorflow and not measures", *real)
    # Alone on the machine.
    session.run("pytest", "-m", "measures")


@nox.session(python=PYTHON, tags=["lint"])
def lint(session: nox.Session) -> None:
    """Run every linter: style, types, layers, the guest's Python floor, spelling."""
    session.install("--require-hashes", "-r", "requirements-dev.txt")
    session.run("ruff", "check", ".")
    session.run("ruff", "check", "workloads", "--config", "workloads/ruff.toml")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports", env={"PYTHONPATH": "."})
    session.run("vermin", "--quiet", "-t=3.6-", "--violations", "workloads")
    session.run("codespell")
    session.run("validate-pyproject", "pyproject.toml")


@nox.session(python=PYTHON, default=False, tags=["update"])
def lock(session: nox.Session) -> None:
    """Make all locks again with uv: the matrix rows (-- [ENV ...]) and the host's own."""
    _stackrace(session, "lock")
    if not session.posargs:
        session.install("uv")
        _compile(session, "requirements.txt")
        _compile(session, "requirements-dev.txt", "--group", "lint", "--group", "tests")


@nox.session(python=PYTHON, default=False, tags=["update"])
def docs(session: nox.Session) -> None:
    """Write again what is made from the code: docs/schema, and the README's environments."""
    session.install("--require-hashes", "-r", "requirements.txt")
    session.run("python", "-m", "orchestrator.model.schemas", "docs/schema")
    session.run("python", "-m", "orchestrator.pipeline.support", "README.md")


@nox.session(python=PYTHON, default=False, tags=["update"])
def releases(session: nox.Session) -> None:
    """Make the table of releases again, which pairs on the fly are chosen from: -- INDEX."""
    session.install("--require-hashes", "-r", "requirements.txt")
    session.run("python", "-m", "orchestrator.pairs.refresh", *session.posargs)


@nox.session(python=PYTHON, default=False, tags=["update"])
def cover(session: nox.Session) -> None:
    """Run every combination of the grid for a moment, and tell which run: -- [ENV ...]."""
    session.install("--require-hashes", "-r", "requirements.txt")
    _run(session, "-m", "orchestrator.pipeline.covering", "docs/grid.md", *session.posargs)


@nox.session(python=PYTHON, default=False, tags=["update"])
def benchmarks(session: nox.Session) -> None:
    """Measure what stackrace costs, and write docs/performance.md: -- [NAME ...]."""
    session.install("--require-hashes", "-r", "requirements.txt")
    _run(session, "-m", "benchmarks", *session.posargs)


@nox.session(python=PYTHON, default=False, tags=["update"])
def reports(session: nox.Session) -> None:
    """Measure public reports of slowness again, and write docs/reports.md: -- [ID ...]."""
    session.install("--require-hashes", "-r", "requirements.txt")
    words = ("examples/reports.toml", "docs/reports.md")
    _run(session, "-m", "orchestrator.pipeline.reported", *words, *session.posargs)


@nox.session(python=PYTHON, default=False, tags=["update"])
def rigour(session: nox.Session) -> None:
    """Check what the verdict claims about its errors at full size, and write docs/rigour.md."""
    session.install("--require-hashes", "-r", "requirements-dev.txt")
    words = ("tests/simulation", "-n", "auto", "--write-rigour", "docs/rigour.md")
    session.run("pytest", *words, *session.posargs, env={"STACKRACE_SIMULATE": "full"})


def _stackrace(session: nox.Session, *words: str) -> None:
    session.install("--require-hashes", "-r", "requirements.txt")
    _run(session, "-m", "orchestrator", *words, *session.posargs)


def _run(session: nox.Session, *words: str) -> None:
    session.run(
        *("python", *words),
        env={
            # nox leaves its children alone when it is terminated: stackrace watches for that.
            "STACKRACE_PARENT": str(os.getpid()),
            "STACKRACE_NOX_SESSIONS": " ".join(f"bench-{name}" for name in registered) or "race",
        },
        # nox kills a child 0.3 s after Ctrl-C otherwise; ending workers in order takes longer.
        interrupt_timeout=30,
        terminate_timeout=30,
    )


def _compile(session: nox.Session, output: str, *options: str) -> None:
    session.run(
        *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"),
        *("--generate-hashes", "--no-header", "--no-annotate", *options),
        *("--output-file", output, "pyproject.toml"),
    )
