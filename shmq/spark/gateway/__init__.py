"""One host's queues for Spark on other hosts: claims, ranges, stages and publishing over Arrow Flight.

`shmq gateway` serves them; the option `uri` of the format "shmq" reads and writes them. Both need pyarrow, no more.
"""
