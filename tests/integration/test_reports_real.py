"""Public reports on real TensorFlow: those whose sign, or number of traces, no machine changes."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import reported
from orchestrator.merge import merge
from orchestrator.model import codec
from orchestrator.model.reports import Reports
from orchestrator.pipeline.reported import newest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "examples" / "reports.toml"
# Differences of several times the whole: as few rounds as an answer needs tell them.
FEW = ("--rounds", "5", "--max-job-seconds", "8")

pytestmark = [pytest.mark.real_tensorflow, pytest.mark.usefixtures("environments")]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "14",
            {
                "Keras 3.6 is slower than Keras 3.7",
                "Keras 3.6 makes its graph anew at every step",
                "Keras 3.7 does not",
            },
        ),
    ],
)
def test_the_report_is_so(tmp_path: Path, name: str, says: set[str]) -> None:
    """Its own command, in fewer rounds, says what was reported."""
    every = codec.decode_toml(TABLE.read_text(encoding="utf-8"), Reports, source=TABLE).report
    words = [*shlex.split(every[name].run), *FEW, "--results", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "run", *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode in (0, 3), done.stderr
    folder = newest(tmp_path)
    frame = merge([(folder.plan(), folder.records())])
    claims = [claim for claim in every[name].claims if claim.says in says]
    assert says == {claim.says for claim in claims}
    found = {c.says: reported.check(c, frame, threshold=0.02).answer for c in claims}
    assert dict.fromkeys(says, "agrees") == found
