/* Rows in plain files. A flush writes one file, named by its first place, which is complete or not there at all.
 *
 *   DIR/<queue's index>.<incarnation>/<first place, 16 hexadecimal digits>
 *
 * A level below the first has a directory of its own: DIR/<queue's index>.<incarnation>.<depth>/. So have the waiting
 * rows of each level (waiting.h), by the depth of its front ring.
 *
 * The purger writes a file (row_file.h) under another name and renames it, which is the commit. Files do not overlap:
 * before a flush it deletes what lies at or above its first place. No file outlives the segment, so none is
 * synchronised. */
#include "flow/file_backing.h"
#include "flow/file_level.h"
#include "flow/rows_base.h"
#include "flow/rows_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens the directory of the level's files. SHMQ_NOT_FOUND: there is none, so there are no rows. */
static shmq_status open_directory(const shmq_file_level *b, DIR **directory) {
    *directory = shmq_rows_directory_open(shmq_rows_base(b->m), b->path);
    if (*directory != NULL) {
        return SHMQ_OK;
    }
    return errno == ENOENT ? SHMQ_NOT_FOUND : shmq_file_failed(b, "read the directory");
}

/* Somebody may have put an empty directory in the place of the file: it is removed as well. */
static bool remove_at(int directory, const char *name) {
    return unlinkat(directory, name, 0) == 0 || errno == ENOENT ||
           (errno == EISDIR && unlinkat(directory, name, AT_REMOVEDIR) == 0);
}

/* Deletes each file whose first place is at or above `from`, and each whose places are all below `low`. */
static shmq_status delete_files(const shmq_file_level *b, uint64_t low, uint64_t from) {
    DIR *directory;
    shmq_status status = open_directory(b, &directory);
    if (status != SHMQ_OK) {
        return status == SHMQ_NOT_FOUND ? SHMQ_OK : status;
    }
    uint64_t newest_below = 0, place; /* the last file that begins at or below `low` may reach beyond it */
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        if (shmq_rows_file_place(e->d_name, &place) && place <= low && place > newest_below) {
            newest_below = place;
        }
    }
    rewinddir(directory);
    for (struct dirent *e; status == SHMQ_OK && (e = readdir(directory)) != NULL;) {
        if (shmq_rows_file_place(e->d_name, &place) && (place >= from || place < newest_below) &&
            !remove_at(dirfd(directory), e->d_name)) {
            status = shmq_file_failed(b, "delete a file of");
        }
    }
    closedir(directory);
    return status;
}

static shmq_status write_rows(void *context, bool sweeps, uint64_t low, uint64_t from, const shmq_row *rows,
                              uint32_t count) {
    shmq_file_level *b = context;
    const shmq_row_cipher by = shmq_file_level_cipher(b);
    if (by.wanted && by.cipher == NULL) {
        return shmq_file_no_key(b);
    }
    int base = shmq_rows_base(b->m);
    bool made = b->m->anonymous ? shmq_rows_directory_make_private(base, b->path, &b->broker, !b->swept)
                                : shmq_rows_directory_make(base, b->path, &b->broker, !b->swept);
    if (!made) {
        return errno == EEXIST ? shmq_file_not_private(b) : shmq_file_failed(b, "make the directory");
    }
    b->swept = true;
    if (SHMQ_UNLIKELY(sweeps)) {
        SHMQ_TRY(delete_files(b, low, from));
    }
    if (count == 0) {
        return SHMQ_OK;
    }
    char name[17];
    shmq_rows_file_name(name, rows[0].place);
    int directory = openat(base, b->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = directory < 0 ? -1 : shmq_rows_file_begin(directory, &b->broker);
    bool done = fd >= 0 && shmq_row_file_write(fd, rows, count, &by) &&
                renameat(directory, SHMQ_ROWS_UNFINISHED, directory, name) == 0;
    shmq_status status = done ? SHMQ_OK : shmq_file_failed(b, "write to");
    if (!done && fd >= 0) {
        (void)unlinkat(directory, SHMQ_ROWS_UNFINISHED, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (directory >= 0) {
        close(directory);
    }
    return status;
}

/* Lists all files by their first places, in order. */
static shmq_status list_files(shmq_file_level *b) {
    DIR *directory;
    b->files.count = 0;
    shmq_status status = open_directory(b, &directory);
    if (status != SHMQ_OK) {
        return status == SHMQ_NOT_FOUND ? SHMQ_OK : status;
    }
    uint64_t place;
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        if (!shmq_rows_file_place(e->d_name, &place)) {
            continue;
        }
        if (!shmq_known_add(&b->files, place)) {
            closedir(directory);
            return shmq_fail_errno("no memory to read messages from disk");
        }
    }
    closedir(directory);
    shmq_known_sort(&b->files);
    return SHMQ_OK;
}

static bool delete_file(const shmq_file_level *b, uint64_t first) {
    char path[PATH_MAX + 20];
    snprintf(path, sizeof path, "%s/%016llx", b->path, (unsigned long long)first);
    return remove_at(shmq_rows_base(b->m), path);
}

/* Deletes files that hold places below `low` only: the next file begins at or below `low`. */
static bool forget_before(shmq_file_level *b, uint64_t low) {
    bool done = true;
    while (b->files.count > 1 && b->files.firsts[1] <= low) {
        done &= delete_file(b, shmq_known_drop_first(&b->files));
    }
    return done;
}

/* Finds a file by its first key. SHMQ_EMPTY: no file begins below `below`. Other processes write files, too: the
 * directory is read again unless a known file answers. */
static shmq_status find_file(shmq_file_level *b, uint64_t from, uint64_t below, bool above, uint64_t *first) {
    if (b->files.count > 1 && shmq_known_choose(&b->files, from, below, above, first) &&
        *first != b->files.firsts[b->files.count - 1]) {
        return SHMQ_OK;
    }
    SHMQ_TRY(list_files(b));
    return shmq_known_choose(&b->files, from, below, above, first) ? SHMQ_OK : SHMQ_EMPTY;
}

/* Forgets the loaded file. */
static void forget(shmq_file_level *b) {
    b->loaded.first = 1;
    b->loaded.last = 0;
}

/* Loads a file. SHMQ_CORRUPT: it makes no sense. SHMQ_NOT_FOUND: it was deleted. SHMQ_DENIED: it needs another key. */
static shmq_status load(shmq_file_level *b, uint64_t first) {
    struct stat file;
    forget(b);
    int fd = shmq_file_open(b, first, O_RDONLY);
    if (fd < 0 || fstat(fd, &file) != 0) {
        shmq_status status = errno == ENOENT                    ? SHMQ_NOT_FOUND
                             : errno == ELOOP || errno == ENXIO ? SHMQ_CORRUPT /* a symbolic link, a socket */
                                                                : shmq_file_failed(b, "read a file of");
        if (fd >= 0) {
            close(fd);
        }
        return status;
    }
    if (!S_ISREG(file.st_mode)) {
        close(fd);
        return SHMQ_CORRUPT;
    }
    const shmq_row_cipher by = shmq_file_level_cipher(b);
    shmq_status status = shmq_row_file_read(&b->loaded, fd, (uint64_t)file.st_size, &by);
    status = status == SHMQ_OS ? shmq_file_failed(b, "read a file of") : status;
    close(fd);
    status = status == SHMQ_OK ? shmq_row_file_open(&b->loaded, &by) : status;
    if (status != SHMQ_OK) {
        forget(b);
    }
    return status == SHMQ_DENIED ? shmq_file_no_key(b) : status;
}

/* Reads the marks of the loaded file again if another process may have marked rows since this one read it. */
static void look_at_marks(shmq_file_level *b, uint64_t erased) {
    if (SHMQ_LIKELY(b->erased == erased) || b->loaded.first > b->loaded.last) {
        return;
    }
    int fd = shmq_file_open(b, b->loaded.first, O_RDONLY);
    if (fd < 0 || !shmq_row_file_look_again(&b->loaded, fd)) {
        forget(b); /* the next read loads the file anew */
    }
    if (fd >= 0) {
        close(fd);
    }
}

static shmq_status read_rows(void *context, uint64_t erased, uint64_t from, uint64_t below, uint64_t bytes,
                             shmq_row *rows, uint32_t *count) {
    shmq_file_level *b = context;
    uint32_t most = *count;
    bool above = false;
    look_at_marks(b, erased);
    b->erased = erased;
    while (from < below) {
        const shmq_row_file *f = &b->loaded;
        uint64_t first = 0;
        if (f->first > f->last || from < f->first || from > f->last) {
            shmq_status status = find_file(b, from, below, above, &first);
            if (status == SHMQ_EMPTY) {
                break;
            }
            SHMQ_TRY(status);
            status = load(b, first);
            if (status == SHMQ_NOT_FOUND) {
                b->files.count = 0; /* the known files are out of date */
                continue;
            }
            if (status == SHMQ_CORRUPT) { /* treated as missing: the next row says how many were lost before it */
                from = first >= from ? first + 1 : from;
                above = true;
                continue;
            }
            SHMQ_TRY(status);
        }
        *count = most;
        shmq_row_file_list(&b->loaded, from, below, bytes, rows, count);
        if (*count != 0) {
            return SHMQ_OK;
        }
        uint64_t passed = f->last > first ? f->last : first; /* a damaged file may claim places below its name */
        from = passed >= from ? passed + 1 : from;
        above = true;
        forget(b); /* no row of this file is wanted any more */
    }
    *count = 0;
    return SHMQ_OK;
}

/* Answers as `load` does. */
static shmq_status lives_in(const shmq_file_level *b, uint64_t first, uint64_t from, uint64_t below,
                            shmq_row_life *lives, uint32_t *count, uint64_t *last) {
    const shmq_row_cipher by = shmq_file_level_cipher(b);
    int fd = shmq_file_open(b, first, O_RDONLY);
    shmq_status status = fd >= 0           ? shmq_row_file_lives(fd, &by, from, below, lives, count, last)
                         : errno == ENOENT ? SHMQ_NOT_FOUND
                                           : SHMQ_OS;
    bool senseless = status == SHMQ_OS && (errno == ELOOP || errno == ENXIO || errno == EISDIR || errno == ESPIPE);
    if (status == SHMQ_OS && !senseless) {
        (void)shmq_file_failed(b, "read a file of");
    }
    for (uint32_t i = 0; i < *count && status == SHMQ_OK; i++) {
        lives[i].first = first;
    }
    if (fd >= 0) {
        close(fd);
    }
    return senseless ? SHMQ_CORRUPT : status;
}

static shmq_status list_lives(void *context, uint64_t from, uint64_t below, shmq_row_life *lives, uint32_t *count) {
    shmq_file_level *b = context;
    const uint32_t most = *count;
    bool above = false;
    while (from < below) {
        uint64_t first, last = 0;
        shmq_status status = find_file(b, from, below, above, &first);
        if (status == SHMQ_EMPTY) {
            break;
        }
        SHMQ_TRY(status);
        *count = most;
        status = lives_in(b, first, from, below, lives, count, &last);
        if (status == SHMQ_NOT_FOUND) {
            b->files.count = 0;
            continue;
        }
        if ((status != SHMQ_OK && status != SHMQ_CORRUPT) || (status == SHMQ_OK && *count != 0)) {
            return status;
        }
        last = last > first ? last : first;
        from = last >= from ? last + 1 : from;
        above = true;
    }
    *count = 0;
    return SHMQ_OK;
}

/* Marks the row of this place as erased. SHMQ_OK: it is marked, or there is no such row. */
static shmq_status erase_row(void *context, uint64_t erased, uint64_t place) {
    shmq_file_level *b = context;
    bool known = b->loaded.first <= place && place <= b->loaded.last;
    int fd = known ? shmq_file_open(b, b->loaded.first, O_WRONLY) : -1;
    if (fd < 0) { /* its file is not loaded, or was deleted */
        shmq_row row;
        uint32_t count = 1;
        forget(b);
        SHMQ_TRY(read_rows(b, erased, place, place + 1, 0, &row, &count));
        if (count == 0 || row.bytes == NULL) {
            return SHMQ_OK;
        }
        fd = shmq_file_open(b, b->loaded.first, O_WRONLY);
    }
    bool done = fd >= 0 && shmq_row_file_mark(&b->loaded, fd, place);
    shmq_status status = done ? SHMQ_OK : shmq_file_failed(b, "write to a file of");
    b->erased = done && b->erased == erased ? erased + 1 : b->erased; /* this one is known */
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

/* Deletes files without rows: the file that was read last has none any more, or some files before it have none. */
static shmq_status settle_rows(void *context, uint64_t low, shmq_ordinal *left) {
    shmq_file_level *b = context;
    static _Thread_local shmq_row_life lives[SHMQ_TURN_ENTRIES];
    uint32_t count = SHMQ_TURN_ENTRIES;
    uint64_t first, last;
    bool loaded = b->loaded.first <= b->loaded.last;
    if (loaded && b->loaded.first <= low && low <= b->loaded.last &&
        (b->files.count == 0 || b->files.firsts[0] >= b->loaded.first)) {
        return SHMQ_EMPTY;
    }
    if (!loaded || b->files.count < 2 || b->files.firsts[0] != b->loaded.first) { /* else what is known will do */
        SHMQ_TRY(list_files(b));
    }
    bool done = forget_before(b, low);
    if (loaded && b->loaded.last < low && b->files.count != 0 && b->files.firsts[0] == b->loaded.first) {
        done &= delete_file(b, shmq_known_drop_first(&b->files));
        forget(b);
    }
    if (!done) {
        return shmq_file_failed(b, "delete a file of");
    }
    if (!shmq_known_choose(&b->files, low, low, false, &first)) {
        return SHMQ_OK;
    }
    SHMQ_TRY(lives_in(b, first, 0, low, lives, &count, &last));
    for (uint32_t i = 0; i < count; i++) {
        left->count++;
        left->bytes += shmq_row_weight(lives[i].length);
    }
    return SHMQ_OK;
}

/* Deletes the file of that name. */
static shmq_status discard_rows(void *context, uint64_t first) {
    shmq_file_level *b = context;
    if (b->loaded.first == first) {
        forget(b);
    }
    b->files.count = 0;
    return delete_file(b, first) ? SHMQ_OK : shmq_file_failed(b, "delete a file of");
}

static shmq_status clear_rows(void *context) {
    shmq_file_level *b = context;
    forget(b);
    b->files.count = 0;
    return delete_files(b, 0, 0);
}

/* Builds the path of the directory of one level, relative as rows_base.h says. False: the path is too long. */
static bool path_of(const shmq_queue *q, uint32_t depth, char path[PATH_MAX]) {
    int length = depth == 0 ? snprintf(path, PATH_MAX, "%s/%u.%u", shmq_rows_base_path(q->m), q->index, q->incarnation)
                            : snprintf(path, PATH_MAX, "%s/%u.%u.%u", shmq_rows_base_path(q->m), q->index,
                                       q->incarnation, depth);
    return length < PATH_MAX;
}

shmq_status shmq_file_backing_of(shmq_queue *q, uint32_t depth, const shmq_backing **backing) {
    shmq_file_level *all = q->backing;
    if (all == NULL) {
        all = calloc(q->rings, sizeof *all);
        if (all == NULL) {
            return shmq_fail_errno("no memory to write messages of a queue to disk");
        }
        q->backing = all;
    }
    shmq_file_level *b = &all[depth];
    if (b->m == NULL) {
        if (!path_of(q, depth, b->path)) {
            return shmq_fail(SHMQ_OS, "the path of the directory for messages on disk is too long: %s", q->m->spill);
        }
        b->m = q->m;
        snprintf(b->place, sizeof b->place, "%s%s", q->m->name, b->path + strlen(shmq_rows_base_path(q->m)));
        forget(b);
        b->calls = (shmq_backing){.context = b,
                                  .write = write_rows,
                                  .read = read_rows,
                                  .list = list_lives,
                                  .pick = shmq_file_pick,
                                  .drop = shmq_file_drop,
                                  .erase = erase_row,
                                  .settle = settle_rows,
                                  .discard = discard_rows,
                                  .clear = clear_rows};
    }
    *backing = &b->calls;
    return SHMQ_OK;
}

void shmq_file_backing_free(shmq_queue *q) {
    shmq_file_level *all = q->backing;
    for (uint32_t depth = 0; all != NULL && depth < q->rings; depth++) {
        free(all[depth].loaded.bytes);
        free(all[depth].picked.bytes);
        free(all[depth].files.firsts);
    }
    free(all);
    q->backing = NULL;
}

uint64_t shmq_file_backing_bytes(const shmq_queue *q) {
    char path[PATH_MAX];
    uint64_t bytes = 0;
    for (uint32_t depth = 0; depth < q->rings && path_of(q, depth, path); depth++) {
        bytes += shmq_rows_directory_bytes(shmq_rows_base(q->m), path);
    }
    return bytes;
}

void shmq_file_backing_remove(shmq_queue *q) {
    char path[PATH_MAX];
    for (uint32_t depth = 0; depth < q->rings && q->m->backing_of == shmq_file_backing_of; depth++) {
        if (path_of(q, depth, path)) {
            shmq_rows_directory_delete(shmq_rows_base(q->m), path);
        }
    }
}
