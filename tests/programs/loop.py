# ruff: noqa
# fmt: off
import shmq


def resize(image: bytes) -> None: ...


jobs = shmq.open("jobs.shmq").queue("resize", codec="bytes")
for m in jobs.consumer():                      # ends after jobs.shutdown(). If this process dies, others get the message
    with m:                                    # ack. An exception: retry, and it passes through, so this loop ends
        resize(m.body)
