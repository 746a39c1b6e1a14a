"""The parts of `shmq pipeline`: plain functions from frames of entries to frames, for anybody's own jobs, too."""
