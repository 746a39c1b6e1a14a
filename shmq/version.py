"""The version of shmq, in one place: the package, the commands and the build read it here."""

__version__ = "0.1.0"
