# ruff: noqa
# fmt: off
import numpy as np

import shmq

broker = shmq.open("camera.shmq", memory="2GiB")
frames = broker.queue("frames", maxsize=16)


class Camera:
    def read_into(self, frame: np.ndarray) -> None: ...


camera = Camera()
while True:                                                    # producer: filled in place, nothing copied
    with frames.loan_array((1080, 1920, 3), "uint8", headers={"camera": 1}) as loan:
        camera.read_into(loan.array)

for m in frames.consumer():                                    # consumer: read in place, nothing copied
    with m:
        print(m.array().mean())

frames.put(np.zeros((2, 2)))                                   # the plain way: one copy in, one copy out
zeros = frames.get()
