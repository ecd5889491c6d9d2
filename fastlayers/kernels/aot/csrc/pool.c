/* A pool of worker threads that sleep on a condition variable. One job at a time; a caller who finds it taken works alone.
 *
 * A job is published in `gate`, one word: a number that changes with every job, and the seats that are still free. A worker
 * takes a seat by compare-and-swap, and the seat is its worker number. When no task is left the caller shuts the gate and
 * waits only for the workers that took a seat: one that wakes up too late, on a machine with other things to do, delays
 * no other.
 *
 * Tasks: each thread begins with a stretch of them that is its own, as far as there are as many threads as stretches, and then
 * helps with the others'. Of steps that are cut alike, a thread so reads what it wrote itself and has in its own cache.
 *
 * Workers: started one by one when a job first wants them, never stopped. After a job a worker watches the gate for at most
 * SPIN_NS, and only while exactly one run (fl_run_begin) is open: with several, the time is better left to the other callers.
 * After a run it goes on for at most CLOSE_NS, and only if that run came as soon after the one before: to call it again takes 15
 * to 25 us, as long as a small network. Then it blocks.
 * Callers: wait for the last seated worker for at most SPIN_NS, then block, since that worker may have lost its processor.
 * Place: workers run where the process may, and as urgently as it does (see place.h), not as who started them.
 * Ends: a run may end early (fl_stop). A thread about to begin a task asks, and leaves out the rest.
 * Fork: only the calling thread lives on in the child, so the child starts again with an empty pool and fresh locks; the
 * parent's pool is not touched. Exit: nothing is joined; blocked or running workers end with the process. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pool.h"
#include "place.h"
#include "platform.h"
#include <stdatomic.h>
#include <string.h>

#define SPIN_NS 200000
#define RETRY_NS 1000000000 /* after a thread was refused, ask the system again only after this time */
#define RECENT_NS 200000 /* so long after a run a worker that sleeps is called soon: its processor does not sleep as deep yet */
#define CLOSE_NS 20000   /* runs that follow each other within this time: workers watch the gate for so long in between */
#define SHORT_NS 20000 /* the clock is not read more often than about so, and at least at every STRIDEth question */
#define STRIDE 16
#define SEAT_BITS 16
#define SEATS(gate) ((int)((gate) & ((1u << SEAT_BITS) - 1)))
#define APART _Alignas(64) /* a cache line of its own: written by one thread while others read its neighbours */

static struct {
  /* The job; written by the owner while the gate is shut, read by seated workers. */
  fl_task_fn fn;
  void *context;
  int64_t tasks;
  int stretches; /* of tasks */
  uint64_t float_mode;
  fl_stop *stop; /* or 0 */
  /* Owner only. */
  int64_t retry_at;
  APART atomic_flag taken;        /* held by the caller whose job runs */
  atomic_int workers;             /* threads that exist */
  atomic_int runs;                /* open brackets */
  _Atomic int64_t ended;          /* when a bracket was closed last */
  atomic_int close;               /* was one opened within CLOSE_NS of that? */
  APART _Atomic uint64_t gate;    /* number of the job << SEAT_BITS | free seats */
  atomic_int awake;               /* workers that will look at the gate again before they block */
  APART atomic_int left;          /* seated workers that are done */
  atomic_int waiting;             /* the caller is blocked on `done` */
  APART fl_mutex lock;            /* guards the two counters below and both conditions */
  int asleep, wakes;              /* blocked workers not yet called; calls not yet answered */
  fl_cond work, done;
  fl_place place;                 /* guarded by the lock as well */
  atomic_uint places, forks;      /* how often it has changed; how often this process is the child of a fork */
  struct { APART _Atomic int64_t next; } stretch[FL_MAX_THREADS]; /* first task of each that no thread has begun */
} pool = {.taken = ATOMIC_FLAG_INIT, .lock = FL_MUTEX_INIT, .work = FL_COND_INIT, .done = FL_COND_INIT};

/* Of this thread: the run that its tasks belong to, whether that began in it, and its number among the workers, 0 for a caller. */
static _Thread_local struct {
  fl_stop *stop;
  int owner, number;
  fl_watch *watch;
} here;

static void stop_begin(fl_stop *stop) {
  atomic_store(&stop->due, FL_GOES_ON);
  stop->left = stop->stride = 1;
  stop->last = 0;
  stop->outer = here.owner ? here.stop : 0;
  here.stop = stop;
  here.owner = 1;
}

static void stop_end(fl_stop *stop) {
  here.stop = stop->outer;
  here.owner = stop->outer != 0;
}

/* Is the run to end? `left`, `stride` and `last` are the asking thread's own. */
static int asked(fl_stop *stop, int *left, int *stride, int64_t *last, int owner) {
  if (atomic_load_explicit(&stop->due, memory_order_relaxed))
    return 1;
  if (--*left > 0)
    return 0;
  const int64_t now = fl_now_ns();
  *left = *stride = now - *last >= SHORT_NS ? 1 : 2 * *stride < STRIDE ? 2 * *stride : STRIDE;
  *last = now;
  if (now >= stop->deadline)
    atomic_store(&stop->due, FL_LATE);
  else if (owner && now >= stop->ask_at) {
    if (stop->ask(stop))
      atomic_store(&stop->due, FL_CALLED_OFF);
    stop->ask_at = fl_now_ns() + stop->every;
  }
  return atomic_load_explicit(&stop->due, memory_order_relaxed);
}

static int stop_due(fl_stop *stop) { return asked(stop, &stop->left, &stop->stride, &stop->last, 1); }

/* Takes a free seat of the open job; 0 if there is none. */
static int take_seat(void) {
  uint64_t gate = atomic_load(&pool.gate);
  while (SEATS(gate))
    if (atomic_compare_exchange_weak(&pool.gate, &gate, gate - 1))
      return SEATS(gate);
  return 0;
}

/* What a thread asks before each task. */
typedef struct {
  int left, stride;
  int64_t last;
} pace;

static int ends(fl_stop *stop, pace *own) {
  return here.owner ? stop_due(stop) : asked(stop, &own->left, &own->stride, &own->last, 0);
}

/* The first task of a stretch; those before are longer by one where the tasks do not go up in them. */
static int64_t begin_of(int stretch, int64_t tasks, int stretches) {
  const int64_t rest = tasks % stretches;
  return tasks / stretches * stretch + (stretch < rest ? stretch : rest);
}

/* Where a thread looks for tasks: at its own stretch first, then at those after it. */
typedef struct {
  int tried, at;
} search;

static search begin_search(int number, int stretches) { return (search){0, number % stretches}; }

/* A task that no thread has begun, or -1. */
static int64_t claim(search *own, int64_t tasks, int stretches) {
  for (; own->tried < stretches; own->tried++, own->at = own->at + 1 < stretches ? own->at + 1 : 0) {
    _Atomic int64_t *next = &pool.stretch[own->at].next;
    const int64_t end = begin_of(own->at + 1, tasks, stretches);
    if (atomic_load_explicit(next, memory_order_relaxed) >= end)
      continue;
    const int64_t task = atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
    if (task < end)
      return task;
  }
  return -1;
}

static void cut(int64_t tasks, int stretches) {
  for (int i = 0; i < stretches; i++)
    atomic_store_explicit(&pool.stretch[i].next, begin_of(i, tasks, stretches), memory_order_relaxed);
}

static void do_tasks(fl_task_fn fn, void *context, int64_t tasks, int stretches, int worker) {
  fl_stop *stop = here.stop;
  pace own = {1, 1, 0};
  search mine = begin_search(here.number, stretches);
  for (int64_t task; (task = claim(&mine, tasks, stretches)) >= 0;) {
    if (stop && ends(stop, &own))
      return;
    fn(context, task, worker);
  }
}

/* Owner: as `threads` threads would, one after the other: see pool.h. */
static void do_watched(fl_task_fn fn, void *context, int64_t tasks, int threads) {
  search mine[FL_MAX_THREADS];
  int64_t busy[FL_MAX_THREADS] = {0}, together = 0, busiest = 0;
  cut(tasks, threads);
  for (int i = 0; i < threads; i++)
    mine[i] = begin_search(i, threads);
  for (;;) {
    int first = 0; /* which thread is free next */
    for (int i = 1; i < threads; i++)
      if (busy[i] < busy[first])
        first = i;
    const int64_t task = claim(&mine[first], tasks, threads), begin = fl_now_ns();
    if (task < 0)
      break; /* it has looked everywhere */
    fn(context, task, first);
    busy[first] += fl_now_ns() - begin;
  }
  for (int i = 0; i < threads; i++) {
    together += busy[i];
    busiest = busy[i] > busiest ? busy[i] : busiest;
  }
  here.watch->job(here.watch, tasks, threads, together, busiest);
}

static void do_alone(fl_task_fn fn, void *context, int64_t tasks) {
  fl_stop *stop = here.stop;
  pace own = {1, 1, 0};
  for (int64_t task = 0; task < tasks; task++) {
    if (stop && ends(stop, &own))
      return;
    fn(context, task, 0);
  }
}

/* The process's place is looked up; workers take it before their next job, if it is another one than before. */
static void look_up_place(void) {
  const fl_place now = fl_process_place();
  fl_lock(&pool.lock);
  if (memcmp(&now, &pool.place, sizeof now)) {
    pool.place = now;
    atomic_fetch_add(&pool.places, 1);
  }
  fl_unlock(&pool.lock);
}

static int ended_within(int64_t ns) { return fl_now_ns() - atomic_load_explicit(&pool.ended, memory_order_relaxed) < ns; }

/* Of a worker. */
static void take_place(void) {
  static _Thread_local unsigned mine;
  if (mine == atomic_load(&pool.places))
    return;
  fl_lock(&pool.lock);
  const fl_place place = pool.place;
  mine = atomic_load(&pool.places);
  fl_unlock(&pool.lock);
  fl_take_place(&place);
}

/* One job of a seated worker. */
static void serve(int seat) {
  /* Subnormals are flushed, and sums rounded, as on the caller's thread: results must not depend on who computes them. */
  if (fl_float_mode() != pool.float_mode)
    fl_set_float_mode(pool.float_mode);
  take_place();
  here.stop = pool.stop;
  do_tasks(pool.fn, pool.context, pool.tasks, pool.stretches, seat);
  here.stop = 0;
  atomic_fetch_add(&pool.awake, 1);
  atomic_fetch_add(&pool.left, 1); /* from here on the job's fields may change */
  if (atomic_load(&pool.waiting)) {
    fl_lock(&pool.lock);
    fl_unlock(&pool.lock);
    fl_signal(&pool.done);
  }
}

/* Has `ready` come true within SPIN_NS? Reading the clock costs about as much as a pause. */
#define SPIN_UNTIL(ready, stop) \
  for (int64_t end = fl_now_ns() + SPIN_NS; !(ready) && !(stop) && fl_now_ns() < end;) \
    for (int i = 0; i < 8 && !(ready); i++) \
      fl_pause();

/* Is there a run that may have another job soon, or is the next one expected? */
static int goes_on(void) {
  const int runs = atomic_load(&pool.runs);
  return runs == 1 || (runs == 0 && atomic_load_explicit(&pool.close, memory_order_relaxed) && ended_within(CLOSE_NS));
}

/* Returns when there may be a seat. */
static void rest(void) {
  SPIN_UNTIL(SEATS(atomic_load_explicit(&pool.gate, memory_order_relaxed)), !goes_on())
  if (SEATS(atomic_load(&pool.gate)))
    return;
  fl_lock(&pool.lock);
  /* Order matters: a caller opens the gate and then reads `awake`, so either it sees us gone or we see the gate open. */
  atomic_fetch_sub(&pool.awake, 1);
  if (SEATS(atomic_load(&pool.gate))) {
    atomic_fetch_add(&pool.awake, 1);
  } else {
    pool.asleep++;
    while (!pool.wakes)
      fl_wait(&pool.work, &pool.lock);
    pool.wakes--; /* who called has counted us as awake already */
  }
  fl_unlock(&pool.lock);
}

static FL_THREAD_RESULT worker_body(void *number) {
  here.number = (int)(intptr_t)number;
  take_place();
  for (;;) {
    const int seat = take_seat();
    if (seat) {
      atomic_fetch_sub(&pool.awake, 1);
      serve(seat);
    } else {
      rest();
    }
  }
  return 0;
}

/* Owner: brings the number of workers up to `wanted`, as far as the system allows. */
static void start_workers(int wanted) {
  while (atomic_load(&pool.workers) < wanted) {
    if (pool.retry_at && fl_now_ns() < pool.retry_at)
      return;
    look_up_place();
    atomic_fetch_add(&pool.awake, 1);
    if (!fl_thread_start(worker_body, (void *)(intptr_t)(atomic_load(&pool.workers) + 1))) {
      atomic_fetch_sub(&pool.awake, 1);
      pool.retry_at = fl_now_ns() + RETRY_NS;
      return;
    }
    pool.retry_at = 0;
    atomic_fetch_add(&pool.workers, 1);
  }
}

/* Owner: wakes a sleeping worker for every seat beyond the workers that are awake already. */
static void wake_workers(int seats) {
  const int missing = seats - atomic_load(&pool.awake);
  if (missing <= 0)
    return;
  fl_lock(&pool.lock);
  const int called = missing < pool.asleep ? missing : pool.asleep, all = called == pool.asleep;
  pool.asleep -= called;
  pool.wakes += called;
  atomic_fetch_add(&pool.awake, called);
  fl_unlock(&pool.lock);
  if (called > 1 && all)
    fl_signal_all(&pool.work);
  else
    for (int i = 0; i < called; i++)
      fl_signal(&pool.work);
}

/* Owner: returns when `seated` workers have left the job. */
static void wait_for(int seated) {
  SPIN_UNTIL(atomic_load(&pool.left) == seated, 0)
  if (atomic_load(&pool.left) == seated)
    return;
  fl_lock(&pool.lock);
  atomic_store(&pool.waiting, 1);
  while (atomic_load(&pool.left) != seated)
    fl_wait(&pool.done, &pool.lock);
  atomic_store(&pool.waiting, 0);
  fl_unlock(&pool.lock);
}

void fl_parallel(fl_task_fn fn, void *context, int64_t tasks, int threads) {
  if (threads > FL_MAX_THREADS)
    threads = FL_MAX_THREADS;
  if (threads > tasks)
    threads = (int)tasks;
  if (threads <= 1 || atomic_flag_test_and_set_explicit(&pool.taken, memory_order_acquire)) {
    do_alone(fn, context, tasks);
    return;
  }
  if (here.watch) {
    do_watched(fn, context, tasks, threads);
    atomic_flag_clear_explicit(&pool.taken, memory_order_release);
    return;
  }
  const int seats = threads - 1;
  const unsigned forks = atomic_load(&pool.forks);
  start_workers(seats);
  pool.fn = fn;
  pool.context = context;
  pool.tasks = tasks;
  pool.float_mode = fl_float_mode();
  pool.stop = here.stop;
  pool.stretches = threads;
  cut(tasks, threads);
  atomic_store_explicit(&pool.left, 0, memory_order_relaxed);
  const uint64_t shut = ((atomic_load(&pool.gate) >> SEAT_BITS) + 1) << SEAT_BITS;
  atomic_store(&pool.gate, shut | (uint64_t)seats);
  wake_workers(seats);
  do_tasks(fn, context, tasks, threads, 0);
  if (forks != atomic_load(&pool.forks)) {
    /* What `ask` called has forked, and this is the child: its workers, and the tasks that they had begun, are gone. */
    if (here.stop)
      atomic_store(&here.stop->due, FL_FORKED);
    return;
  }
  const int seated = seats - SEATS(atomic_exchange(&pool.gate, shut));
  if (atomic_load(&pool.left) != seated)
    wait_for(seated);
  atomic_flag_clear_explicit(&pool.taken, memory_order_release);
}

void fl_parallel_whole(fl_task_fn fn, void *context, int64_t tasks, int threads) {
  fl_stop *stop = here.stop;
  here.stop = 0;
  fl_parallel(fn, context, tasks, threads);
  here.stop = stop;
}

static int due_here(void) {
  static _Thread_local pace own;
  return here.stop && ends(here.stop, &own);
}

const fl_stops fl_stop_table = {stop_begin, stop_end, stop_due, due_here, look_up_place};

/* How many brackets this thread has open: a kernel of two jobs has one of its own within that of its run. */
static _Thread_local int depth;

void fl_run_begin(void) {
  if (depth++ == 0 && atomic_fetch_add(&pool.runs, 1) == 0)
    atomic_store_explicit(&pool.close, ended_within(CLOSE_NS), memory_order_relaxed);
}

/* Stops at 0: a thread that forked within a bracket closes it in the child too, where it has been forgotten. */
void fl_run_end(void) {
  if (--depth > 0)
    return;
  atomic_store_explicit(&pool.ended, fl_now_ns(), memory_order_relaxed);
  int runs = atomic_load(&pool.runs);
  while (runs > 0 && !atomic_compare_exchange_weak(&pool.runs, &runs, runs - 1)) {
  }
}

void fl_run_wake(int threads) {
  if (threads > 1 && atomic_load(&pool.runs) == 1)
    wake_workers(threads - 1);
}

void fl_watch_jobs(fl_watch *watch) { here.watch = watch; }

int fl_pool_awake(void) { return here.watch || atomic_load_explicit(&pool.awake, memory_order_relaxed) > 0; }

int fl_pool_close(void) { return atomic_load_explicit(&pool.close, memory_order_relaxed) && atomic_load(&pool.runs) == 1; }

int fl_pool_recent(void) { return ended_within(RECENT_NS); }

unsigned fl_pool_forks(void) { return atomic_load_explicit(&pool.forks, memory_order_relaxed); }

int fl_pool_workers(void) { return atomic_load(&pool.workers); }

/* In a forked child, where the calling thread is alone. Nothing of the parent's state can be trusted: another thread may have
 * been anywhere. */
static void forget_workers(void) {
  static const fl_mutex fresh_lock = FL_MUTEX_INIT;
  static const fl_cond fresh_cond = FL_COND_INIT;
  pool.lock = fresh_lock;
  pool.work = pool.done = fresh_cond;
  pool.asleep = pool.wakes = 0;
  pool.retry_at = 0;
  atomic_fetch_add(&pool.forks, 1);
  atomic_store(&pool.workers, 0);
  atomic_store(&pool.awake, 0);
  atomic_store(&pool.waiting, 0);
  atomic_store(&pool.runs, 0);
  atomic_store(&pool.gate, 0);
  atomic_flag_clear(&pool.taken);
}

void fl_pool_init(void) { fl_at_fork(0, 0, forget_workers); }
