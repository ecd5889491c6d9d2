/* The thread pool: see pool.c for its rules. */
#ifndef FL_POOL_H
#define FL_POOL_H
#include <stdint.h>

/* The most threads that one call may have, the caller among them. */
#define FL_MAX_THREADS 256

/* Does task number `task`; `worker` (0 is the caller) distinguishes tasks that run at the same time, for scratch memory. It may
 * call fl_parallel again, which finds the pool busy; it must not fork. */
typedef void (*fl_task_fn)(void *context, int64_t task, int worker);

/* Runs tasks 0 .. tasks - 1 on up to `threads` threads, the caller among them, and returns when all are done. A pool that is
 * busy, or a thread that cannot be started, makes the caller do the rest alone. No two workers of one call have the same
 * number, and all values are below `threads`. */
void fl_parallel(fl_task_fn fn, void *context, int64_t tasks, int threads);
/* The same for what outlives the run that it is part of, such as packed weights: all tasks are done, even if that run is to end. */
void fl_parallel_whole(fl_task_fn fn, void *context, int64_t tasks, int threads);

/* What may end the run of the calling thread early: a deadline, and what it asks now and then itself, such as whether a signal has
 * come. Jobs of that thread meanwhile leave out the tasks that are not begun when the run is to end, on every worker; what they
 * wrote is then worth nothing. */
#define FL_NEVER INT64_MAX
enum { FL_GOES_ON, FL_LATE, FL_CALLED_OFF, FL_FORKED };
typedef struct fl_stop fl_stop;
struct fl_stop {
  int64_t deadline;       /* in the time of fl_now_ns, or FL_NEVER */
  int64_t ask_at;         /* when `ask` is called next, or FL_NEVER; */
  int64_t every;          /* and how long after that again */
  int (*ask)(fl_stop *);  /* on the thread of the run; not 0: the run is to end */
  /* Below: set by fl_stop_begin. */
  _Atomic int due;        /* why it is to end, or FL_GOES_ON */
  int left, stride;       /* of the thread of the run: the clock is read at every `stride`th question */
  int64_t last;
  fl_stop *outer;         /* of the run within which this one began */
};
typedef struct {
  void (*begin)(fl_stop *);
  void (*end)(fl_stop *);   /* of the one that began last in this thread */
  int (*due)(fl_stop *);    /* asked by the thread of the run between its steps */
  int (*due_here)(void);    /* asked within long tasks, by whatever thread does them: is the run that they belong to to end? */
  void (*place)(void);      /* workers take the process's place (see place.h) before their next job, if it has changed */
} fl_stops;
extern const fl_stops fl_stop_table;

/* Brackets calls of fl_parallel that follow each other closely: in between, workers spin (at most 200 us) instead of sleeping.
 * Both are called on the same thread. */
void fl_run_begin(void);
void fl_run_end(void);

/* Within a bracket: workers that sleep are called, to wait for the jobs that will come. */
void fl_run_wake(int threads);

/* Is a worker awake, which would take up a job at once? */
int fl_pool_awake(void);

/* Has a run (fl_run_end) ended just now? Then a worker that sleeps is called soon. */
int fl_pool_recent(void);

/* Has the only open run begun within microseconds of the end of the one before? Then its workers watch for the next one too. */
int fl_pool_close(void);

/* To foresee what more threads than there are would do: jobs of the calling thread meanwhile run on it alone, each task in the
 * order and with the worker's number that it would have if tasks took as long on many threads; `job` hears of each job that has
 * more than one thread: how long its tasks took together, and how long the busiest of its threads was at work. */
typedef struct fl_watch fl_watch;
struct fl_watch {
  void (*job)(fl_watch *, int64_t tasks, int threads, int64_t together, int64_t busiest);
};
void fl_watch_jobs(fl_watch *watch); /* 0: no longer */

/* Number of worker threads that exist now (0 before the first use and after a fork). */
int fl_pool_workers(void);

/* How often this process has become the child of a fork. What began before has lost its workers. */
unsigned fl_pool_forks(void);

/* Called once, before anything else: registers the handler that gives a forked child a fresh pool. */
void fl_pool_init(void);
#endif
