/* Aligned memory, recycled: new pages cost up to 0.6 ms a megabyte in page faults, pages that have been used before cost
 * nothing.
 *
 * Small requests (below 64 KB) go to malloc, which recycles them itself. Larger ones are pages of the system's (in malloc's
 * heap, one live block keeps the freed ones before it resident), rounded up to a size class, eight to each doubling (at most 1/8
 * is wasted), and when freed go on that class's list. A request takes the block of its class that was freed last (its lines may
 * still be in a cache), or else one of the next class.
 *
 * Kept in all: at most 256 blocks, and at most twice the bytes that were lately in use at one time, not less than 16 and not more
 * than 256 MB; or, where that is more, as many bytes as were lately in use beyond those that are now. So the next run finds
 * whatever the last one needed, however large, a small service stays small, lengths that vary cannot make the list grow, and the
 * process never holds more than 256 MB next to the most that it lately needed. "Lately" ends: a burst is forgotten after two
 * windows of time, each of LEAST_NS and WINDOW requests at least, or else of MOST_NS (time is looked at when there is a request:
 * a process that does nothing keeps what it has until fl_memory_trim). So what is needed every second is retained, or costs page
 * faults once a second at most. Over the limit, the block freed longest ago goes back to the system
 * first. Where the system has no memory, the list is given back and the request is made again.
 *
 * What lives long, weights above all, is not retained, nor counted for that limit: blocks of less than two pages of 2 MB share chunks of them, whose pages of 2 MB
 * are read a quarter faster than small ones (33 against 26 GB/s on a virtual machine), and which go back to the system with their last
 * block, but for the one that is filled at present.
 *
 * Blocks begin at different offsets in a 4 KB page: where input and output agree in their last 12 bits, loads wait for
 * unrelated stores. The lock guards the lists alone, for some nanoseconds; the system's allocator is called outside of it. */
#include "memory.h"
#include "platform.h"
#include <stdatomic.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* AddressSanitizer is told what must not be touched: a retained block, and around one in use its header and what is beyond the
 * request. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define FORBID ASAN_POISON_MEMORY_REGION
#define ALLOW ASAN_UNPOISON_MEMORY_REGION
#else
#define FORBID(block, bytes) (void)(block)
#define ALLOW(block, bytes) (void)(block)
#endif

#define ALIGNMENT 64
#define PAGE 4096
/* An odd number of lines, so that successive blocks take all 64 offsets. A kernel's output is most often the block after its
 * input, and is best more than half a page ahead of it: further than the stores reach that still wait to be written. */
#define COLOUR_STEP (41 * ALIGNMENT)
#define FIRST_CLASS_LOG 16 /* 64 KB */
#define LAST_CLASS_LOG 40  /* 1 TB: what is larger is not retained */
#define STEPS_LOG 3
#define CLASSES (((LAST_CLASS_LOG - FIRST_CLASS_LOG) << STEPS_LOG) + 1)
#define UNKEPT (-1)
#define SHARES (-2) /* a chunk, with others */
#define LEAST_SHARE ((size_t)32 << 10)
#define MOST_SHARE ((size_t)4 << 20) /* from here on `make` has pages of 2 MB */
#define CHUNK ((size_t)32 << 20)
#define MOST_RETAINED ((size_t)8 << 20) /* of an open chunk without blocks */
#define MOST_BLOCKS 256
#define MIN_LIMIT ((size_t)16 << 20)
#define MAX_LIMIT ((size_t)256 << 20)
#define WINDOW 4096
#define LEAST_NS 500000000
#define MOST_NS 10000000000
#define SMALL_REQUESTS 64 /* small ones are counted by so many, so that they need no lock */

/* Stored in the line before the block. */
typedef struct header header;
struct header {
  void *raw;             /* what the system gave, or the chunk, */
  size_t mapped;         /* and how many bytes of pages that is; 0: it came from malloc */
  size_t room;           /* from the block's first byte to the end of what it may use */
  int class_;            /* or UNKEPT or SHARES */
  header *newer, *older; /* neighbours by time of freeing: of the same class, */
  header *newer_of_all, *older_of_all; /* and of all classes */
};
_Static_assert(sizeof(header) <= ALIGNMENT, "the header must fit into the line before a block");

typedef struct {
  header *newest, *oldest;
} list;

/* Its first line; the blocks follow. */
typedef struct {
  size_t taken; /* bytes */
  int blocks;   /* in use */
} chunk;

static struct {
  fl_mutex lock;
  chunk *open; /* that new blocks share, or 0 */
  list classes[CLASSES], all;
  size_t kept, used;       /* bytes by size class: on the lists, and in use, */
  size_t shared;           /* and in use in chunks, which no list is to have room for */
  size_t peak, peak_before; /* the most in use at one time in this window, and in the one before */
  int64_t requests, since; /* of this window, and when it began */
  int blocks;
} memory = {.lock = FL_MUTEX_INIT};

static size_t class_bytes(int class_) {
  const int doubling = class_ >> STEPS_LOG, step = class_ & ((1 << STEPS_LOG) - 1);
  return ((size_t)(1 << STEPS_LOG) + (size_t)step) << (FIRST_CLASS_LOG - STEPS_LOG + doubling);
}

/* The smallest class that holds `bytes`. */
static int class_of(size_t bytes) {
  if (bytes < (size_t)1 << FIRST_CLASS_LOG || bytes > (size_t)1 << LAST_CLASS_LOG)
    return UNKEPT;
  const unsigned long long last = bytes - 1;
  const int log = 63 - __builtin_clzll(last);
  if (log < FIRST_CLASS_LOG)
    return 0;
  const int step = (int)(last >> (log - STEPS_LOG)) & ((1 << STEPS_LOG) - 1);
  return ((log - FIRST_CLASS_LOG) << STEPS_LOG) + step + 1;
}

/* With the lock held: how many bytes may be retained. */
static size_t limit(void) {
  const size_t peak = memory.peak > memory.peak_before ? memory.peak : memory.peak_before, twice = 2 * peak;
  const size_t bound = twice < MIN_LIMIT ? MIN_LIMIT : twice > MAX_LIMIT ? MAX_LIMIT : twice, back = peak - memory.used;
  return back > bound ? back : bound;
}

/* With the lock held: counts requests, and begins a new window when this one is over. */
static void count_requests(int64_t number) {
  const int64_t lasts = fl_now_ns() - memory.since;
  if ((memory.requests += number) < WINDOW ? lasts < MOST_NS : lasts < LEAST_NS)
    return;
  /* After a pause as long as a window what came before it is forgotten as well. */
  memory.peak_before = lasts < 2 * MOST_NS ? memory.peak : memory.used;
  memory.peak = memory.used;
  memory.requests = 0;
  memory.since += lasts;
}

/* With the lock held: puts a block on the lists, as the newest. */
static void keep(header *h) {
  list *of = &memory.classes[h->class_];
  h->newer = h->newer_of_all = 0;
  h->older = of->newest;
  h->older_of_all = memory.all.newest;
  *(of->newest ? &of->newest->newer : &of->oldest) = h;
  *(memory.all.newest ? &memory.all.newest->newer_of_all : &memory.all.oldest) = h;
  of->newest = memory.all.newest = h;
  memory.kept += class_bytes(h->class_);
  memory.blocks++;
}

/* With the lock held: takes a block off the lists. */
static void unkeep(header *h) {
  list *of = &memory.classes[h->class_];
  *(h->newer ? &h->newer->older : &of->newest) = h->older;
  *(h->older ? &h->older->newer : &of->oldest) = h->newer;
  *(h->newer_of_all ? &h->newer_of_all->older_of_all : &memory.all.newest) = h->older_of_all;
  *(h->older_of_all ? &h->older_of_all->newer_of_all : &memory.all.oldest) = h->newer_of_all;
  memory.kept -= class_bytes(h->class_);
  memory.blocks--;
}

/* With the lock held: takes blocks off the lists, the oldest first, until the rest is within the bounds; returns them, chained
 * by `older`. */
static header *take_excess(size_t bytes, int blocks) {
  header *chain = 0;
  while (memory.blocks && (memory.kept > bytes || memory.blocks > blocks)) {
    header *oldest = memory.all.oldest;
    unkeep(oldest);
    oldest->older = chain;
    chain = oldest;
  }
  return chain;
}

/* Gives a block to the system, which may hand the same pages to somebody else. */
static void unmake(header *h) {
  ALLOW(h, (size_t)ALIGNMENT + h->room);
  if (h->mapped)
    fl_unmap(h->raw, h->mapped);
  else
    free(h->raw);
}

static void free_chain(header *chain) {
  while (chain) {
    header *next = chain->older;
    unmake(chain);
    chain = next;
  }
}

/* A block of the class, or of the one above it, that was freed before; 0 if there is none. Counts the request as in use either
 * way. */
static header *take_kept(int class_) {
  header *found = 0, *excess = 0;
  fl_lock(&memory.lock);
  count_requests(1);
  for (int c = class_; !found && c <= class_ + 1 && c < CLASSES; c++)
    found = memory.classes[c].newest;
  if (found)
    unkeep(found);
  memory.used += class_bytes(found ? found->class_ : class_);
  if (memory.used > memory.peak)
    memory.peak = memory.used;
  if (!found)
    excess = take_excess(limit(), MOST_BLOCKS); /* what is about to be asked of the system takes their place */
  fl_unlock(&memory.lock);
  free_chain(excess);
  return found;
}

/* A new block of `bytes`, or 0. */
static header *make(size_t bytes, int class_) {
  static atomic_uint made;
  const int large = bytes >= (size_t)1 << FIRST_CLASS_LOG;
  const size_t period = large ? PAGE : ALIGNMENT, place = large ? (size_t)atomic_fetch_add(&made, 1) * COLOUR_STEP % PAGE : 0;
  const size_t room = ALIGNMENT + period + bytes;
  char *raw = large ? fl_map(room) : malloc(room);
  if (!raw) {
    fl_memory_trim();
    raw = large ? fl_map(room) : malloc(room);
    if (!raw)
      return 0;
  }
  /* The first address after the header that is at its place in the page (in the line, if the block is small). */
  char *first = raw + ALIGNMENT, *block = first + ((place - (uintptr_t)first) & (period - 1));
  header *h = (header *)(block - ALIGNMENT);
  h->raw = raw;
  h->mapped = large ? room : 0;
  h->room = (size_t)(raw + room - block);
  h->class_ = class_;
  return h;
}

/* Requests that have no class pass time as well, or a burst would stay for ever where only small ones follow. */
static void count_small(void) {
  static _Thread_local int requests;
  if (++requests < SMALL_REQUESTS)
    return;
  requests = 0;
  fl_lock(&memory.lock);
  count_requests(SMALL_REQUESTS);
  header *excess = take_excess(limit(), MOST_BLOCKS);
  fl_unlock(&memory.lock);
  free_chain(excess);
}

void *fl_alloc(size_t bytes) {
  if (bytes > PTRDIFF_MAX - ALIGNMENT - PAGE)
    return 0;
  const int class_ = class_of(bytes);
  if (class_ == UNKEPT)
    count_small();
  header *h = class_ == UNKEPT ? 0 : take_kept(class_);
  if (!h && !(h = make(class_ == UNKEPT ? bytes : class_bytes(class_), class_)) && class_ != UNKEPT) {
    fl_lock(&memory.lock);
    memory.used -= class_bytes(class_);
    fl_unlock(&memory.lock);
  }
  if (!h)
    return 0;
  char *block = (char *)h + ALIGNMENT;
  FORBID(block, h->room);
  ALLOW(block, bytes);
  FORBID(h, ALIGNMENT);
  return block;
}

/* With the lock held: a block of the open chunk, or 0 if it has no room. */
static header *take_share(size_t room) {
  chunk *c = memory.open;
  if (!c || CHUNK - c->taken < ALIGNMENT + room)
    return 0;
  header *h = (header *)((char *)c + c->taken);
  ALLOW(h, ALIGNMENT);
  c->taken += ALIGNMENT + room;
  c->blocks++;
  h->raw = c;
  h->mapped = 0;
  h->room = room;
  h->class_ = SHARES;
  memory.shared += ALIGNMENT + room;
  return h;
}

void *fl_alloc_long(size_t bytes) {
#ifdef __linux__ /* elsewhere no pages of 2 MB can be had for the asking */
  if (bytes < LEAST_SHARE || bytes >= MOST_SHARE)
#endif
    return fl_alloc(bytes);
  const size_t room = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  fl_lock(&memory.lock);
  header *h = take_share(room);
  fl_unlock(&memory.lock);
  if (!h) {
    chunk *fresh = fl_map(CHUNK);
    if (!fresh)
      return fl_alloc(bytes);
    fresh->taken = ALIGNMENT;
    fresh->blocks = 0;
    FORBID((char *)fresh + ALIGNMENT, CHUNK - ALIGNMENT);
    fl_lock(&memory.lock);
    chunk *before = memory.open;
    memory.open = fresh; /* the one before goes with its last block */
    const int empty = before && !before->blocks; /* another thread's, just now */
    h = take_share(room);
    fl_unlock(&memory.lock);
    if (empty) {
      ALLOW(before, CHUNK);
      fl_unmap(before, CHUNK);
    }
  }
  char *block = (char *)h + ALIGNMENT;
  ALLOW(block, bytes);
  FORBID(h, ALIGNMENT);
  return block;
}

/* A block of a chunk, which the last one gives back. */
static void free_share(header *h) {
  chunk *c = h->raw;
  FORBID((char *)h + ALIGNMENT, h->room);
  fl_lock(&memory.lock);
  memory.shared -= ALIGNMENT + h->room;
  int last = --c->blocks == 0;
  if (last && memory.open == c) {
    last = c->taken > MOST_RETAINED;
    if (last)
      memory.open = 0;
    else
      c->taken = ALIGNMENT; /* as it is: what packs weights for one call alone asks again and again */
  }
  fl_unlock(&memory.lock);
  if (last) {
    ALLOW(c, CHUNK);
    fl_unmap(c, CHUNK);
  }
}

void fl_free(void *block) {
  if (!block)
    return;
  header *h = (header *)((char *)block - ALIGNMENT);
  ALLOW(h, ALIGNMENT);
  if (h->class_ == UNKEPT) {
    unmake(h);
    return;
  }
  if (h->class_ == SHARES) {
    free_share(h);
    return;
  }
  FORBID(block, h->room);
  fl_lock(&memory.lock);
  memory.used -= class_bytes(h->class_);
  keep(h);
  header *excess = take_excess(limit(), MOST_BLOCKS);
  fl_unlock(&memory.lock);
  free_chain(excess);
}

size_t fl_memory_kept(void) {
  fl_lock(&memory.lock);
  const size_t kept = memory.kept;
  fl_unlock(&memory.lock);
  return kept;
}

size_t fl_memory_used(void) {
  fl_lock(&memory.lock);
  const size_t used = memory.used + memory.shared;
  fl_unlock(&memory.lock);
  return used;
}

void fl_memory_trim(void) {
  fl_lock(&memory.lock);
  header *all = take_excess(0, 0);
  chunk *empty = memory.open && !memory.open->blocks ? memory.open : 0;
  if (empty)
    memory.open = 0;
  fl_unlock(&memory.lock);
  free_chain(all);
  if (empty) {
    ALLOW(empty, CHUNK);
    fl_unmap(empty, CHUNK);
  }
}

void fl_give_back_heap(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

/* A fork must not find the lists half changed by another thread. The child gets a fresh lock: it holds the old one, but on a
 * thread that some C libraries number again. */
static void before_fork(void) { fl_lock(&memory.lock); }
static void after_fork_in_parent(void) { fl_unlock(&memory.lock); }
static void after_fork_in_child(void) {
  static const fl_mutex fresh = FL_MUTEX_INIT;
  memory.lock = fresh;
}

void fl_memory_init(void) { fl_at_fork(before_fork, after_fork_in_parent, after_fork_in_child); }
