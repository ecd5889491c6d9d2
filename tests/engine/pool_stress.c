/* Hammers the pool from several threads at once: every task must run exactly once, and no two workers of a call may share a
 * number.
 *
 *     pool_stress hammer ROUNDS   four callers with jobs of varying size, nested ones, with and without brackets
 *     pool_stress fork CHILDREN   the same going on while the main thread forks; each child must get through a job of its own
 *     pool_stress exit            the process ends while workers and callers run
 *     pool_stress steps FORKS     a run of steps in parts asks whether it is to end, and is forked there: in the child it ends
 *     pool_stress float           workers flush subnormal numbers exactly if their caller does
 * Ends with 0 if all was well, else says what was not. */
#include "memory.h"
#include "platform.h"
#include "pool.h"
#include "lockstep.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLERS 4
#define MOST_TASKS 100
#define MOST_THREADS 6

typedef struct {
  int threads, nested, work;
  int runs[MOST_TASKS]; /* plain: a task has one worker, and the caller reads when all are done */
  atomic_int busy[MOST_THREADS];
  atomic_int wrong;
} job;

static atomic_int stop;

static void inner_task(void *context, int64_t task, int worker) {
  (void)task;
  atomic_fetch_add((atomic_int *)context, worker >= 0 && worker < 3);
}

static void task_body(void *context, int64_t task, int worker) {
  job *j = context;
  if (worker < 0 || worker >= j->threads || atomic_exchange(&j->busy[worker], 1))
    atomic_store(&j->wrong, 1);
  for (volatile int i = 0; i < j->work; i++) {
  }
  if (j->nested) {
    atomic_int inner = 0; /* a caller that runs alone may find the pool free again here */
    fl_parallel(inner_task, &inner, 7, 3);
    if (atomic_load(&inner) != 7)
      atomic_store(&j->wrong, 1);
  }
  j->runs[task]++;
  atomic_store(&j->busy[worker], 0);
}

/* One job of a size that `seed` draws; 0 if it went wrong. */
static int one_job(unsigned *seed) {
  job j;
  memset(&j, 0, sizeof j);
  const int tasks = rand_r(seed) % (MOST_TASKS + 1);
  j.threads = 1 + rand_r(seed) % MOST_THREADS;
  j.nested = rand_r(seed) % 4 == 0;
  j.work = rand_r(seed) % 2000;
  fl_parallel(task_body, &j, tasks, j.threads);
  for (int i = 0; i < MOST_TASKS; i++)
    if (j.runs[i] != (i < tasks))
      return 0;
  return !atomic_load(&j.wrong);
}

/* Steps in parts: each part adds up what all parts of the step before left, in one of two rows that alternate. */
typedef struct {
  int64_t parts;
  int work;
  uint64_t rows[2][FL_LOCKSTEP_PARTS]; /* plain: a step begins when the one before is over */
} walk;

static void walk_part(void *context, int64_t step, int64_t part) {
  walk *w = context;
  uint64_t sum = (uint64_t)(step + part);
  for (volatile int i = 0; i < w->work * (int)(part + 1); i++) {
  }
  for (int64_t i = 0; i < w->parts; i++)
    sum = sum * 31 + w->rows[step & 1][i];
  w->rows[~step & 1][part] = sum;
}

/* A walk of a size that `seed` draws; 0 if it went wrong. */
static int one_walk(unsigned *seed) {
  walk w = {.parts = 1 + rand_r(seed) % FL_LOCKSTEP_PARTS, .work = rand_r(seed) % 500}, alone = w;
  const int64_t steps = rand_r(seed) % 40;
  fl_lockstep(walk_part, &w, steps, (int)w.parts, 1 + rand_r(seed) % MOST_THREADS);
  alone.work = 0;
  for (int64_t step = 0; step < steps; step++)
    for (int64_t part = 0; part < w.parts; part++)
      walk_part(&alone, step, part);
  return !memcmp(w.rows, alone.rows, sizeof w.rows);
}

typedef struct {
  unsigned seed;
  int rounds, failed;
} caller;

static void *caller_body(void *argument) {
  caller *c = argument;
  for (int i = 0; i < c->rounds && !atomic_load(&stop) && !c->failed; i++) {
    const int bracket = i / 8 % 2;
    if (bracket)
      fl_run_begin();
    c->failed |= !one_job(&c->seed) || !one_walk(&c->seed);
    void *block = fl_alloc((size_t)(rand_r(&c->seed) % (1 << 20)));
    c->failed |= !one_job(&c->seed);
    fl_free(block);
    if (bracket)
      fl_run_end();
    if (i % 64 == 63) { /* let the workers fall asleep */
      struct timespec pause = {0, 200000};
      nanosleep(&pause, 0);
    }
  }
  return 0;
}

static pthread_t threads[CALLERS];
static caller callers[CALLERS];

static void start(int rounds) {
  for (int i = 0; i < CALLERS; i++) {
    callers[i] = (caller){.seed = 17u + (unsigned)i, .rounds = rounds};
    if (pthread_create(&threads[i], 0, caller_body, &callers[i]))
      exit(2);
  }
}

static int finish(void) {
  int failed = 0;
  for (int i = 0; i < CALLERS; i++) {
    pthread_join(threads[i], 0);
    failed |= callers[i].failed;
  }
  return failed;
}

static int fork_children(int children) {
  int failed = 0;
  for (int i = 0; i < children; i++) {
    const pid_t child = fork();
    if (child == 0) {
      unsigned seed = (unsigned)i;
      alarm(20); /* a child that hangs dies by this signal */
      int ok = fl_pool_workers() == 0;
      for (int k = 0; k < 20; k++) {
        ok &= one_job(&seed) && one_walk(&seed);
        fl_free(fl_alloc((size_t)1 << 17));
      }
      _exit(!ok);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
      failed++;
  }
  return failed;
}

static pid_t asked_child;

static int ask_forks(fl_stop *run) {
  run->ask_at = FL_NEVER;
  if (asked_child < 0) {
    asked_child = fork();
    if (asked_child == 0)
      alarm(20);
  }
  return 0;
}

/* Parent: the walk is done as if nothing had been asked. Child: it returns, and says why; a walk of the child's own is right. */
static int fork_within(int forks) {
  int failed = 0;
  for (int i = 0; i < forks; i++) {
    const int64_t steps = 200;
    walk w = {.parts = 3, .work = 2000}, alone = {.parts = 3};
    fl_stop run = {.deadline = FL_NEVER, .ask_at = fl_now_ns() + 20000 * (i % 50), .every = FL_NEVER / 2, .ask = ask_forks};
    asked_child = -1;
    fl_stop_table.begin(&run);
    fl_lockstep(walk_part, &w, steps, 3, 3);
    fl_stop_table.end(&run);
    if (asked_child == 0) {
      unsigned seed = (unsigned)i;
      _exit(!(atomic_load(&run.due) == FL_FORKED && one_walk(&seed) && one_job(&seed)));
    }
    for (int64_t step = 0; step < steps; step++)
      for (int64_t part = 0; part < 3; part++)
        walk_part(&alone, step, part);
    int status = 0;
    failed += memcmp(w.rows, alone.rows, sizeof w.rows) || (asked_child > 0 && (waitpid(asked_child, &status, 0) != asked_child || status));
  }
  return failed;
}

#if defined(__x86_64__)
#define FLUSH 0x8000u
#elif defined(__aarch64__)
#define FLUSH (1u << 24)
#else
#define FLUSH 0u
#endif

static void subnormal_task(void *context, int64_t task, int worker) {
  volatile float smallest = 1.17549435e-38f;
  ((int *)context)[task] = (smallest * 0.5f == 0.0f) == (FLUSH && fl_float_mode() & FLUSH) ? 1 + (smallest * 0.5f == 0.0f) : 0;
  for (volatile int i = 0; i < 20000; i++) {
  }
  if (worker)
    atomic_store(&stop, 1);
}

/* Repeats until a worker has taken part: the system decides when it first runs. */
static int float_modes(void) {
  const uint64_t before = fl_float_mode();
  int failed = 0;
  for (int flush = 0; flush < 4; flush++) {
    atomic_store(&stop, 0);
    fl_set_float_mode(flush & 1 ? before | FLUSH : before);
    for (int round = 0; round < 1000 && !atomic_load(&stop); round++) {
      int seen[MOST_TASKS] = {0};
      fl_parallel(subnormal_task, seen, MOST_TASKS, 3);
      for (int i = 0; i < MOST_TASKS; i++)
        failed += seen[i] != 1 + (FLUSH && flush & 1);
    }
  }
  fl_set_float_mode(before);
  return failed;
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "";
  const int number = count > 2 ? atoi(words[2]) : 0;
  int failed = 0;
  fl_pool_init();
  fl_memory_init();
  if (!strcmp(what, "hammer")) {
    start(number);
    failed = finish();
  } else if (!strcmp(what, "fork")) {
    start(1 << 30);
    failed = fork_children(number);
    atomic_store(&stop, 1);
    failed += finish();
  } else if (!strcmp(what, "steps")) {
    failed = fork_within(number);
  } else if (!strcmp(what, "float")) {
    failed = float_modes();
  } else if (!strcmp(what, "exit")) {
    struct timespec some = {0, 20000000};
    start(1 << 30);
    nanosleep(&some, 0);
    return 0;
  } else {
    return 2;
  }
  if (failed)
    fprintf(stderr, "%s: %d failed\n", what, failed);
  return failed != 0;
}
