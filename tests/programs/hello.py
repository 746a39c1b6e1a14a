# ruff: noqa
# fmt: off
# terminal 1
import shmq

shmq.open("hello.shmq").queue("greetings").put("hello, world")

# terminal 2, started before or after
print(shmq.open("hello.shmq").queue("greetings").get())
