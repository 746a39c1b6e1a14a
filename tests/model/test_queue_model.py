"""Several processes use a queue at random; a plain model of a queue says what each has to see after each step."""

import pytest

from tests.model.conftest import BUILT, Run


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("kind", BUILT)
def test_all_processes_agree_with_the_model_after_each_step(run: Run, kind: str) -> None:
    """Shows G1."""
    run(kind)
