"""The command `shmq`. Each command is in a module of its own kind, imported when it is used."""
