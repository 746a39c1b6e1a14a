"""Every option of a queue, a message, a consumer and a settlement is given by some rule of the machine, or left out.

The package itself says which are not built yet.
"""

import inspect
from collections.abc import Mapping

import pytest

from shmq.engine.broker.broker import Broker
from shmq.engine.consumer.consumer import Consumer
from shmq.engine.message.message import Message
from shmq.engine.queue.queue import Queue
from shmq.options import PUT_OPTIONS, QUEUE_OPTIONS
from tests.model.conftest import KINDS, rules
from tests.model.queue_rules import ALTERED

# Options of a queue that are neither in a kind of the test nor altered at random.
QUEUE_RULES = {"expires": "let_expire"}

PUT_RULES = {
    "headers": "put",
    "priority": "put",
    "group": "put",
    "ttl": "put",
    "delay": "put",
    "immediate": "put_immediate",
}

# Each argument of each call, and a rule that gives it.
ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "Broker.consumer": {
        "queues": "sweep",
        "prefetch": "sweep",
        "selector": "sweep",
        "priority": "sweep",
        "exclusive": "sweep",
    },
    "Queue.put": {"body": "put", "timeout": "wait_for_room", "options": "put"},
    "Queue.put_many": {"bodies": "put_many", "timeout": "put_many", "options": "put_many"},
    "Queue.loan": {"nbytes": "put", "timeout": "put", "options": "put"},
    "Queue.get": {"timeout": "get"},
    "Queue.get_many": {"limit": "get_many", "timeout": "get_many"},
    "Queue.receive": {"timeout": "hand_over"},
    "Queue.receive_many": {"limit": "receive_many", "timeout": "receive_many"},
    "Queue.consumer": {
        "prefetch": "subscribe",
        "selector": "subscribe",
        "priority": "serve_by_rank",
        "exclusive": "make_exclusive",
    },
    "Queue.browse": {"start": "browse", "follow": "follow", "selector": "browse"},
    "Queue.join": {"timeout": "join"},
    "Queue.purge": {"selector": "purge"},
    "Queue.move": {"to": "move", "selector": "move", "limit": "move", "copy": "move"},
    "Queue.alter": {"options": "alter"},
    "Queue.shutdown": {"immediate": "shutdown"},
    "Queue.reopen": {},
    "Queue.delete": {},
    "Queue.qsize": {},
    "Queue.statistics": {},
    "Consumer.receive": {"timeout": "serve_by_rank"},
    "Consumer.receive_many": {"limit": "receive_many", "timeout": "receive_many"},
    "Consumer.close": {},
    "Message.ack": {},
    "Message.release": {"delay": "release", "elsewhere": "release"},
    "Message.retry": {"error": "retry", "delay": "retry"},
    "Message.reject": {"error": "reject"},
    "Message.touch": {},
}

# Calls that cannot make a difference to order, visibility or counts.
LEFT_OUT = {
    "Consumer.fileno": "says when receive() is worth a try, and takes nothing",
    "Queue.loan_array": "a loan like the other one, whose body is an array",
    "Queue.get_arrow": "get_many(), whose messages are columns",
    "Queue.browse_arrow": "browse(), whose messages are columns",
    "Queue.put_arrow": "put_many(), whose messages are columns",
    "Message.view": "another way to the same body",
    "Message.array": "another way to the same body",
}


def test_every_option_of_a_queue_is_given() -> None:
    in_kinds = {name for options, _ in KINDS.values() for name in options}
    assert set(QUEUE_OPTIONS) == in_kinds | set(ALTERED) | set(QUEUE_RULES)


def test_every_option_of_a_message_is_given() -> None:
    assert set(PUT_OPTIONS) == set(PUT_RULES)


@pytest.mark.parametrize("owner", [Queue, Consumer, Message])
def test_every_call_is_made(owner: type) -> None:
    calls = {f"{owner.__name__}.{name}" for name, _ in inspect.getmembers(owner, callable) if not name.startswith("_")}
    assert calls == {name for name in [*ARGUMENTS, *LEFT_OUT] if name.startswith(f"{owner.__name__}.")}


@pytest.mark.parametrize("call", ARGUMENTS)
def test_every_argument_of_a_call_is_given(call: str) -> None:
    owner, name = call.split(".")
    function = getattr({"Broker": Broker, "Queue": Queue, "Consumer": Consumer, "Message": Message}[owner], name)
    options = {*(QUEUE_OPTIONS if name == "alter" else PUT_OPTIONS)} if "options" in ARGUMENTS[call] else set()
    found = set(inspect.signature(function).parameters) - {"self"}
    assert found | ({"immediate"} & options) == set(ARGUMENTS[call]) - {"options"} | options


def test_the_rules_that_give_them_are_rules_of_the_machine() -> None:
    named = {rule for arguments in ARGUMENTS.values() for rule in arguments.values()}
    assert (named | set(QUEUE_RULES.values()) | set(PUT_RULES.values())) - rules() == set()
