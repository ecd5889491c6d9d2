/* Turns at something that only one thread may have, such as Python's GIL, for who would rather wait than keep another waiting.
 *
* A thread that wants it says so before it waits for it, and says when it has it. Who has it can see that it is wanted, give it up, and wait
 * until it was taken: without that it would have it again before the other one has woken up. Included by one source alone. */
#ifndef FL_TURNS_H
#define FL_TURNS_H
#include "platform.h"
#include <stdatomic.h>

#define TAKEN_NS 1000000 /* who has not come by then waits for something else */

static atomic_int fl_waiting, fl_taken;

static void fl_none_waits(void) { atomic_store(&fl_waiting, 0); } /* in a forked child */
static inline void fl_turns_init(void) { fl_at_fork(0, 0, fl_none_waits); }
static inline void fl_want_turn(void) { atomic_fetch_add(&fl_waiting, 1); }
static inline void fl_have_turn(void) {
  atomic_fetch_sub(&fl_waiting, 1);
  atomic_fetch_add(&fl_taken, 1);
}
static inline int fl_wanted(void) { return atomic_load(&fl_waiting) > 0; }
static inline void fl_until_taken(void) {
  const int before = atomic_load(&fl_taken);
  const int64_t end = fl_now_ns() + TAKEN_NS;
  while (atomic_load(&fl_taken) == before && fl_wanted() && fl_now_ns() < end)
    for (int i = 0; i < 20; i++)
      fl_pause();
}
#endif
