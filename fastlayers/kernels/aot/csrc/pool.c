/* placeholder: runs everything on the caller's thread */
#include "pool.h"
void fl_parallel(fl_task_fn fn, void *context, int64_t tasks, int threads) {
  (void)threads;
  for (int64_t i = 0; i < tasks; i++)
    fn(context, i, 0);
}
void fl_run_begin(void) {}
void fl_run_end(void) {}
int fl_pool_workers(void) { return 0; }
void fl_pool_init(void) {}
