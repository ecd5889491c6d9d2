/* Steps that follow each other, each cut into parts that may be done at once: one job of the pool instead of one a step.
 *
 * A thread takes parts by compare-and-swap from the step before to this one, so a thread that was held up cannot take a part of a
 * step that is over. `done` counts parts of all steps, so it tells the step too, and a worker that comes late begins where the
 * others are. Each thread has a part of its own, whose data its core keeps. A part that no thread has taken is taken by another:
 * at once as long as not all threads have come, later after PATIENCE_NS, for its own thread is then about to take it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "lockstep.h"
#include "platform.h"
#include "pool.h"
#include <stdatomic.h>

#define APART _Alignas(64)
#define PATIENCE_NS 3000
#define SPIN_NS 200000 /* after so long the thread that we wait for may have lost its processor: it is offered ours */

typedef struct {
  fl_part_fn fn;
  void *context;
  int64_t steps, parts;
  int threads;
  unsigned forks;
  APART atomic_int here;        /* threads that have come */
  APART _Atomic int64_t done;   /* parts of all steps */
  struct {
    APART _Atomic int64_t step; /* in which the part was taken last */
  } taken[FL_LOCKSTEP_PARTS];
} lockstep;

static int take(lockstep *t, int64_t part, int64_t step) {
  int64_t before = step - 1;
  if (atomic_load_explicit(&t->taken[part].step, memory_order_relaxed) != before ||
      !atomic_compare_exchange_strong(&t->taken[part].step, &before, step))
    return 0;
  t->fn(t->context, step, part);
  atomic_fetch_add(&t->done, 1);
  return 1;
}

/* Is it over: no step left, the run to end, or this the child of a fork, in which those who took parts are gone? */
static int over(lockstep *t, int64_t step) {
  return step >= t->steps || fl_pool_forks() != t->forks || fl_stop_table.due_here() || fl_pool_forks() != t->forks;
}

static void step_of_all(lockstep *t, int64_t step, int64_t own) {
  const int64_t target = (step + 1) * t->parts;
  int64_t from = 0;
  take(t, own, step);
  for (int spins = 1; atomic_load(&t->done) < target; spins++) {
    if (atomic_load_explicit(&t->here, memory_order_relaxed) >= t->threads) {
      fl_pause();
      if (spins % 16)
        continue;
      const int64_t now = fl_now_ns();
      from = from ? from : now;
      if (now - from < PATIENCE_NS)
        continue;
      if (now - from > SPIN_NS)
        fl_yield();
    }
    for (int64_t part = 0; part < t->parts; part++)
      take(t, part, step);
  }
}

static void join_in(void *context, int64_t task, int worker) {
  lockstep *t = context;
  atomic_fetch_add(&t->here, 1);
  for (int64_t step; !over(t, step = atomic_load(&t->done) / t->parts);)
    step_of_all(t, step, worker % t->parts);
  (void)task;
}

void fl_lockstep(fl_part_fn fn, void *context, int64_t steps, int parts, int threads) {
  lockstep t = {.fn = fn, .context = context, .steps = steps, .parts = parts, .threads = threads, .forks = fl_pool_forks()};
  for (int i = 0; i < parts; i++)
    t.taken[i].step = -1;
  fl_parallel(join_in, &t, threads, threads);
}
