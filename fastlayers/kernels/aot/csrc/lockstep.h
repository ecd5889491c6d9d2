/* Steps that follow each other, each cut into parts: see lockstep.c. */
#ifndef FL_LOCKSTEP_H
#define FL_LOCKSTEP_H
#include <stdint.h>

#define FL_LOCKSTEP_PARTS 8 /* the most parts of a step */

/* Does part number `part` of step number `step`; parts of one step may run at the same time. Must not fork. */
typedef void (*fl_part_fn)(void *context, int64_t step, int64_t part);

/* Does steps 0 .. steps - 1, of `parts` parts each, on up to `threads` threads, the caller among them. A step begins when all parts
 * of the one before are done. Returns when the last is, or when the run is to end (pool.h), whose results are then worth nothing. */
void fl_lockstep(fl_part_fn fn, void *context, int64_t steps, int parts, int threads);
#endif
