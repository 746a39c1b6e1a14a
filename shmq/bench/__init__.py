"""Measuring shmq beside its peers: real producer and consumer processes, contestants in turn, ratios in one run."""
