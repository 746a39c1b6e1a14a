/* The descriptors of a membership. Programs close descriptors that they do not know: daemons all of them, others one
 * twice. Its number then is another file's. So each use that would lock, lay or read a stranger's file asks first what the
 * descriptor leads to. Private memory; nothing here is shared. */
#ifndef SHMQ_SEGMENT_DESCRIPTORS_H
#define SHMQ_SEGMENT_DESCRIPTORS_H

#include <pthread.h>
#include <sys/stat.h>

#include "segment/member.h"

extern pthread_mutex_t shmq_rejoin_mutex; /* one thread of a child makes the child a member */

/* The file that the descriptor leads to; all 0: none. */
shmq_file shmq_file_of(int fd);
/* Does the descriptor lead to this file? Fills *seen if it does. */
bool shmq_leads_to(int fd, const shmq_file *file, struct stat *seen);
/* Does the descriptor lead to the segment? */
bool shmq_maps_by(const shmq_member *m, int fd);
/* A descriptor of the segment for anything but the row's lock, opened anew where it was closed beneath us. -1: there is
 * no way to it any more. */
int shmq_segment_fd(shmq_member *m);
/* Does lock_fd hold our locks? Else other processes may reap us: the caller's answer is shmq_member_lost(). */
bool shmq_has_locks(const shmq_member *m);
/* Closes what still is the membership's own. A child of a fork has no lock of its own: `locks` false leaves that. */
void shmq_descriptors_close(shmq_member *m);
/* A child of a fork: it closes its parent's description, and opens one of its own by the mapped file or by its name. */
shmq_status shmq_descriptors_of_child(shmq_member *m);
/* Opens the description that is to hold our locks. */
shmq_status shmq_lock_fd_open(shmq_member *m);
/* Gives up every lock byte that this membership holds. */
void shmq_lock_fd_close(shmq_member *m);
/* Lists a membership, for the fork handler; and takes it off. */
void shmq_descriptors_watch(shmq_member *m);
void shmq_descriptors_forget(shmq_member *m);

#endif
