"""The tests of shmq; a package, so that child processes can import what a test module defines."""
