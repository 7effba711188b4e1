"""The page that the simulations write: every target, and whether it holds."""

from __future__ import annotations

from tests.simulation.figures import NAIVE, TARGETS, Figure, page, percent


def test_a_target_holds_when_all_of_its_figures_do() -> None:
    """One figure outside its bound is enough, and a target without figures says so."""
    good = Figure("R1", "5 rounds", "4 to 6%", "5.1%", "10000 races")
    bad = Figure("R1", "10 rounds", "4 to 6%", "9.9%", "10000 races")
    text = page([(good, True), (bad, False), (bad._replace(target="R2"), True)], how="At no size.")
    states = {
        line.split(" | ")[0].strip("| "): line.rsplit(" | ", 1)[1].strip(" |")
        for line in text.splitlines()
        if line.startswith("| R")
    }
    assert {"R1": "**no**", "R2": "yes"} | dict.fromkeys(
        list(TARGETS)[2:], "not measured"
    ) == states
    assert "| 10 rounds | 4 to 6% | 9.9% | 10000 races | **no** |" in text
    assert "At no size." in text


def test_other_rules_stand_beside_each_other() -> None:
    """Rates of other rules are no targets, and stand in a table of their own."""
    text = page([(Figure(NAIVE, "Welch", "17%", "3%", "1000"), True)], how="")
    assert "| Welch | 17% | 3% | 1000 |" in text
    assert "## R1\n" not in text


def test_small_shares_have_two_digits() -> None:
    """A bound of 1% is not told from 0.5% by none."""
    assert ["0.25%", "5.1%", "98.0%"] == [percent(share) for share in (0.0025, 0.051, 0.98)]


def test_tests_that_end_in_any_order_make_one_page() -> None:
    """Rows go by their numbers, and a bar in a reason ends no cell."""
    kept = [
        (Figure("R1", f"{rounds} rounds, rho 0.3", "4 to 6%", "a|b", "1 race"), True)
        for rounds in (20, 5, 10)
    ]
    rows = [line for line in page(kept, how="").splitlines() if "a/b" in line]
    assert ["5", "10", "20"] == [row.split()[1] for row in rows]
    assert page(kept, how="") == page(kept[::-1], how="")
