# ruff: noqa
# fmt: off
from typing import Any

import shmq


class Busy(Exception): ...
class Malformed(Exception): ...
def charge(order: dict[str, Any]) -> None: ...


def handle(m: shmq.Message[dict[str, Any]]) -> None:           # any other exception: retry, after five dead
    try:
        charge(m.body)
    except Busy:
        m.retry()                              # later
    except Malformed as error:
        m.reject(error)                        # never again


broker = shmq.open("shop.shmq")
orders = broker.queue("orders", max_attempts=5)
shmq.WorkerPool(orders, handle, processes=0).run()             # in this thread, until Ctrl-C or orders.shutdown()

dead = broker.queue("orders.dead")             # later: look
for m in dead.browse():
    print(m.body, m.death)
