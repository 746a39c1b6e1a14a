"""A mistake in the model, or in what the processes run, is found: what does not find them finds nothing else either."""

import pytest
from hypothesis import Phase
from hypothesis.errors import Flaky

from tests.model.conftest import Run
from tests.model.mistakes import ACTORS, MODELS, USUAL
from tests.model.player import Actor
from tests.model.queue_model import QueueModel


def is_disagreement(raised: BaseException | None) -> bool:
    """Of processes and model: hypothesis may raise its own error on top, as a mistake can pass the second time."""
    return raised is not None and (isinstance(raised, AssertionError) or is_disagreement(raised.__context__))


# Enough that a mistake which needs three or four certain steps is met, whatever the seed: one in some forty examples
# meets it, so 200 of them miss it in one run of a hundred.
SEARCH = {"max_examples": 1000, "phases": [Phase.generate], "report_multiple_bugs": False}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_mistake_in_the_model_is_found(run: Run, model: type[QueueModel]) -> None:
    kind, steps = MODELS[model]
    with pytest.raises((AssertionError, Flaky)) as raised:
        run(kind, model=model, steps=[*USUAL, *steps], **SEARCH)
    assert is_disagreement(raised.value), raised.value


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("make", ACTORS, ids=lambda make: make.__name__)
def test_a_mistake_in_the_processes_is_found(run: Run, make: type[Actor]) -> None:
    kind, steps = ACTORS[make]
    with pytest.raises((AssertionError, Flaky)) as raised:
        run(kind, make=make, steps=[*USUAL, *steps], **SEARCH)
    assert is_disagreement(raised.value), raised.value
