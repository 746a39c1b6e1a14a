"""What `shmq pipeline` is made of: plain functions from frames of entries to frames, for anybody's own jobs, too."""
