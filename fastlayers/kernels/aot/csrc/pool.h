/* The thread pool: see pool.c for its rules. */
#ifndef FL_POOL_H
#define FL_POOL_H
#include <stdint.h>

/* The most threads that one call may have, the caller among them. */
#define FL_MAX_THREADS 256

/* Does task number `task`; `worker` (0 is the caller) tells tasks that run at the same time apart, for scratch memory. It may
 * call fl_parallel again, which finds the pool busy; it must not fork. */
typedef void (*fl_task_fn)(void *context, int64_t task, int worker);

/* Runs tasks 0 .. tasks - 1 on up to `threads` threads, the caller among them, and returns when all are done. A pool that is
 * busy, or a thread that cannot be started, makes the caller do the rest alone. No two workers of one call have the same
 * number, and all numbers are below `threads`. */
void fl_parallel(fl_task_fn fn, void *context, int64_t tasks, int threads);

/* Brackets calls of fl_parallel that follow each other closely: in between, workers spin (at most 50 us) instead of sleeping.
 * Both are called on the same thread. */
void fl_run_begin(void);
void fl_run_end(void);

/* Number of worker threads that exist now (0 before the first use and after a fork). */
int fl_pool_workers(void);

/* Called once, before anything else: registers the handler that gives a forked child a fresh pool. */
void fl_pool_init(void);
#endif
