/* Where threads may run, and how urgently: what Linux keeps for each thread, and what a new one takes from the thread that starts it.
 * Elsewhere nothing is done. */
#ifndef FL_PLACE_H
#define FL_PLACE_H

#ifdef __linux__

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
  unsigned long processors[8192 / (8 * sizeof(unsigned long))];
  long bytes; /* of the mask that the system uses; 0: it does not tell */
  long niceness; /* no padding: records are compared byte by byte */
} fl_place;

/* That of the process, which is its first thread's; a caller's own may be narrower. */
static inline fl_place fl_process_place(void) {
  fl_place place = {.bytes = 0};
  const long bytes = syscall(SYS_sched_getaffinity, getpid(), sizeof place.processors, place.processors);
  errno = 0;
  place.niceness = getpriority(PRIO_PROCESS, (id_t)getpid());
  if (bytes > 0 && !errno)
    place.bytes = bytes;
  return place;
}

/* The calling thread takes it, as far as it is allowed to: to become more urgent again needs a privilege. */
static inline void fl_take_place(const fl_place *place) {
  if (!place->bytes)
    return;
  (void)!syscall(SYS_sched_setaffinity, 0, place->bytes, place->processors);
  (void)!setpriority(PRIO_PROCESS, 0, place->niceness);
}

#else

typedef struct {
  long bytes;
} fl_place;
static inline fl_place fl_process_place(void) { return (fl_place){0}; }
static inline void fl_take_place(const fl_place *place) { (void)place; }

#endif
#endif
