/* Memory for scratch and for large results: blocks go back to a bounded free list instead of to the system. See memory.c. */
#ifndef FL_MEMORY_H
#define FL_MEMORY_H
#include <stddef.h>
#include <stdint.h>

void *fl_alloc(size_t bytes);  /* 64-byte aligned, not initialized; NULL if there is no memory */
void *fl_alloc_long(size_t bytes); /* the same for what lives long and is read often: see memory.c */
void fl_free(void *block);     /* NULL is allowed; any thread may free what another has allocated */
size_t fl_memory_kept(void);   /* bytes on the free list */
size_t fl_memory_used(void);   /* bytes of large blocks in use */
void fl_memory_trim(void);     /* gives the free list back to the system */
void fl_give_back_heap(void);  /* and what malloc keeps of its own, where it can be told to */
void fl_memory_init(void);     /* called once, before anything else: registers the handlers for forked children */
#endif
