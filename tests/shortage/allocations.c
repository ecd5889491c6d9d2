/* Loaded before everything else (LD_PRELOAD): allocations of some size and more fail where they are told to. glibc alone. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static size_t least = (size_t)-1;
static long seen, first = -1, last = -1;

/* From now on allocations of `size` bytes and more are counted; those from number `from` to before `to` fail. */
void fail_allocations(size_t size, long from, long to) {
    seen = 0, first = from, last = to, least = size;
}
long allocations_seen(void) { return seen; }

static int fails(size_t size) {
    if (size < least)
        return 0;
    long at = __atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
    if (at < first || at >= last)
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return fails(size) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) {
    return fails(size && count > (size_t)-1 / size ? (size_t)-1 : count * size) ? NULL : __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) { return fails(size) ? NULL : __libc_realloc(old, size); }
void *memalign(size_t align, size_t size) { return fails(size) ? NULL : __libc_memalign(align, size); }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }
int posix_memalign(void **out, size_t align, size_t size) {
    void *made = memalign(align, size);
    if (!made)
        return ENOMEM;
    *out = made;
    return 0;
}
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    return fails(size) ? MAP_FAILED : (void *)syscall(SYS_mmap, at, size, protection, flags, file, offset);
}
