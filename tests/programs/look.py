# ruff: noqa
# fmt: off
import time

import shmq

broker = shmq.open("shop.shmq", create=False)
for m in broker.queue("orders", create=False).browse():        # takes nothing
    print(m.position, m.redelivered, m.headers, m.body)

while True:
    for name, s in broker.statistics().queues.items():
        print(f"{name:20} {s.ready:>9} ready {s.unsettled:>6} unsettled  oldest {s.oldest_age or 0:.1f} s")
    time.sleep(1.0)
