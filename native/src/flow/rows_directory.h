/* The directory of a queue's rows. */
#ifndef SHMQ_ROWS_DIRECTORY_H
#define SHMQ_ROWS_DIRECTORY_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Each path lies below `base`, as with openat(2). */
DIR *shmq_rows_directory_open(int base, const char *path);
/* Makes the directory and those above it, up to the broker's; they have its group and mode, which *as says. `sweeps`:
 * also deletes what earlier queues of this index have left, and makes anew what a process that was killed has not given
 * its mode. False: see errno. */
bool shmq_rows_directory_make(int base, const char *path, struct stat *as, bool sweeps);
/* Makes the directory for an anonymous broker: the directory above its own is one that all users share. The broker's
 * folder there must be this user's alone, else false and EEXIST. */
bool shmq_rows_directory_make_private(int base, const char *path, struct stat *as, bool sweeps);
/* Deletes the directory and the files in it with names of row files. Another file stays, and the directory with it. */
void shmq_rows_directory_delete(int base, const char *path);
/* Sums the bytes of the row files in the directory. */
uint64_t shmq_rows_directory_bytes(int base, const char *path);
/* Says whether the name is that of a queue's directory, or of a level's. True only of names that path_of() of
 * file_backing.c makes. */
bool shmq_rows_is_of_queue(const char *name, unsigned *index, unsigned *incarnation);
/* Writes the name of a row file, which is made of the file's first place. */
void shmq_rows_file_name(char name[17], uint64_t place);
/* Reads the place from the name of a row file. False: it is no such name, so no place could open the file. */
bool shmq_rows_file_place(const char *name, uint64_t *place);
/* Begins a file that gets its own name when it is complete, with group and mode of the broker. One that a killed process
 * of another user has left can only be deleted. -1: see errno. */
#define SHMQ_ROWS_UNFINISHED "unfinished"
int shmq_rows_file_begin(int directory, const struct stat *as);

#endif
