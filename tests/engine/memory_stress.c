/* Hammers the allocator from several threads: blocks of random sizes, handed from thread to thread, filled, checked and freed.
 *
 *     memory_stress hammer ROUNDS
 *     memory_stress fork CHILDREN   threads take and give blocks while the main thread forks; each child must find the lists whole
 * Ends with 0 if no block was out of line, shared or overwritten, and the list stayed within its bounds. */
#include "memory.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define SLOTS 16

typedef struct {
  size_t words; /* of 8 bytes */
  uint64_t mark, body[];
} block;

static _Atomic(block *) slots[SLOTS];
static atomic_int failed;
static atomic_int stop;
static int rounds;

/* Sizes spread evenly over the doublings from 16 bytes to 4 MB. */
static size_t draw(unsigned *seed) {
  const int log = 4 + rand_r(seed) % 18;
  return ((size_t)1 << log) + (size_t)rand_r(seed) % ((size_t)1 << log);
}

/* The mark at both ends and in some words between: neighbours that overlap would show. */
static void fill(block *b, size_t bytes, uint64_t mark) {
  b->words = (bytes - sizeof(block)) / 8;
  b->mark = mark;
  for (size_t i = 0; i < b->words; i += 61)
    b->body[i] = mark + i;
  if (b->words)
    b->body[b->words - 1] = mark + b->words - 1;
}

static int intact(const block *b) {
  for (size_t i = 0; i < b->words; i += 61)
    if (b->body[i] != b->mark + i)
      return 0;
  return !b->words || b->body[b->words - 1] == b->mark + b->words - 1;
}

static void *body(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  for (int i = 0; i < rounds; i++) {
    const size_t bytes = draw(&seed);
    block *b = i % 3 ? fl_alloc(bytes) : fl_alloc_long(bytes);
    if (!b || (uintptr_t)b % 64) {
      atomic_store(&failed, 1);
      return 0;
    }
    fill(b, bytes, (uint64_t)seed << 32 | (uint64_t)i);
    block *other = atomic_exchange(&slots[rand_r(&seed) % SLOTS], b);
    if (other && !intact(other))
      atomic_store(&failed, 2);
    fl_free(other);
    if (fl_memory_kept() > (size_t)256 << 20)
      atomic_store(&failed, 3);
    if (i % 500 == 499)
      fl_memory_trim();
  }
  return 0;
}

/* Nothing but changes of the lists, so that a fork is likely to fall into one. */
static void *churn(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  while (!atomic_load(&stop)) {
    void *blocks[8];
    for (int i = 0; i < 8; i++)
      blocks[i] = (i % 2 ? fl_alloc : fl_alloc_long)((size_t)(1 + rand_r(&seed) % 16) << 16);
    for (int i = 0; i < 8; i++)
      fl_free(blocks[i]);
  }
  return 0;
}

static void fork_children(int children) {
  for (int i = 0; i < children; i++) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20); /* a child that hangs dies by this signal */
      fl_free(fl_alloc((size_t)1 << 18));
      fl_memory_trim();
      _exit(fl_memory_kept() != 0);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
      atomic_store(&failed, 5);
  }
  atomic_store(&stop, 1);
}

int main(int count, char **words) {
  const int forks = count > 2 && !strcmp(words[1], "fork");
  pthread_t threads[THREADS];
  if (count < 3 || (!forks && strcmp(words[1], "hammer")))
    return 2;
  rounds = atoi(words[2]);
  fl_memory_init();
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], 0, forks ? churn : body, (void *)(uintptr_t)(i + 1)))
      return 2;
  if (forks)
    fork_children(rounds);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], 0);
  for (int i = 0; i < SLOTS; i++)
    fl_free(slots[i]);
  fl_memory_trim();
  if (fl_memory_kept())
    atomic_store(&failed, 4);
  if (failed)
    fprintf(stderr, "failed: %d\n", failed);
  return failed;
}
