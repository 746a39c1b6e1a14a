# ruff: noqa
# fmt: off
import multiprocessing

from shmq.mp import Queue                     # was: from multiprocessing import Queue


def square(todo: "Queue[int | None]", done: "Queue[int]") -> None:
    while (n := todo.get()) is not None:
        done.put(n * n)


if __name__ == "__main__":
    todo: Queue[int | None] = Queue()
    done: Queue[int] = Queue()
    process = multiprocessing.Process(target=square, args=(todo, done))
    process.start()
    for n in [*range(1000), None]:
        todo.put(n)
    process.join()                            # before the drain: never hangs
    print(sum(done.get() for _ in range(1000)))
