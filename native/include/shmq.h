/* The one header of the C core for its users: what a program calls, what it is told, and the statuses of both.
 *
 * A broker is a segment of shared memory. A process becomes a member of it, binds queues, and puts and takes messages:
 *
 *   shmq_segment_create, shmq_member_attach, shmq_queue_declare
 *   shmq_put; or shmq_prepare and shmq_put_some for several
 *   shmq_get takes a message for good; shmq_receive lends it until shmq_settle, shmq_release or shmq_entry_ends
 *   shmq_queue_unbind, shmq_member_leave, shmq_member_free
 *
 * Each call answers a shmq_status; shmq_trail() has the words for people. Times are of shmq_now_ns(). The library has no
 * thread and no process: its calls do what is due. docs/example.c is a whole program.
 *
 * Declarations stand in the headers of the rooms that define them, and this file has them by subject. Fields of handles
 * (shmq_member, shmq_queue, shmq_ring) and whatever ends in _shm are the core's own. */
#ifndef SHMQ_H
#define SHMQ_H

/* statuses, clocks, checksums, and the bytes of headers */
#include "base/cipher.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/headers.h"
#include "base/status.h"
#include "base/wait_time.h"

/* a broker and its members */
#include "recovery/reap.h"
#include "segment/inspect.h"
#include "segment/member.h"
#include "segment/structure.h"
#include "segment/wall_clock.h"

/* queues: declare, bind, alter, delete */
#include "lifecycle/declare.h"
#include "lifecycle/delete.h"
#include "lifecycle/handle_bind.h"
#include "limits/room_wake.h"
#include "queue/handle.h"
#include "queue/level.h"
#include "queue/settings.h"

/* put */
#include "limits/line.h"
#include "put/immediate.h"
#include "put/move.h"
#include "put/overflow.h"
#include "put/put.h"
#include "ring/outgoing.h"
#include "time/receipt.h"

/* take, and wait */
#include "ring/delivery.h"
#include "take/claim.h"
#include "take/news.h"
#include "take/take.h"
#include "take/wait_any.h"
#include "wake/wait.h"

/* a message in hand: its body, its place, its fate */
#include "blocks/block.h"
#include "ring/death_record.h"
#include "ring/ring.h"
#include "settle/expire.h"
#include "settle/hold.h"
#include "settle/settle.h"
#include "time/times.h"

/* consumers, and which messages they want */
#include "consumers/ranks.h"
#include "consumers/sleepers.h"
#include "consumers/unused.h"
#include "groups/row_close.h"
#include "queue/consumer_row.h"
#include "selectors/row_selector.h"
#include "selectors/selector.h"
#include "selectors/subscription.h"

/* messages on disk */
#include "flow/flow.h"
#include "flow/flow_alert.h"
#include "flow/turn.h"
#include "flow/waiting.h"

/* looking on, counts and facts for people */
#include "check/check.h"
#include "check/faults.h"
#include "check/memory_use.h"
#include "consumers/who_waits.h"
#include "look/browse.h"
#include "look/census.h"
#include "queue/alert.h"
#include "queue/queue_facts.h"
#include "ring/ring_memory.h"
#include "segment/alert_time.h"
#include "segment/broker_facts.h"

/* housekeeping of a process that has time */
#include "segment/requests.h"
#include "upkeep/duty.h"

#endif
