/* What the pool and the allocator need of the operating system: locks, conditions, threads, a clock, fork handlers, pages. No
 * policy here.
 *
 * POSIX threads, or Windows' own primitives (no winpthreads, which would be one more library to ship). Locks and conditions
 * have static initializers everywhere, so that a forked child can have fresh ones by assignment. */
#ifndef FL_PLATFORM_H
#define FL_PLATFORM_H
#include <stddef.h>
#include <stdint.h>

/* Workers run tiles with a few kilobytes of locals. The C library takes thread-local storage of every loaded library from the
 * same stack, and musl's default of 128 KB is too little for that; untouched pages cost nothing. */
#define FL_STACK_BYTES (1u << 20)

#ifdef _WIN32

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
typedef SRWLOCK fl_mutex;
typedef CONDITION_VARIABLE fl_cond;
#define FL_MUTEX_INIT SRWLOCK_INIT
#define FL_COND_INIT CONDITION_VARIABLE_INIT
#define FL_THREAD_RESULT DWORD WINAPI
static inline void fl_lock(fl_mutex *m) { AcquireSRWLockExclusive(m); }
static inline void fl_unlock(fl_mutex *m) { ReleaseSRWLockExclusive(m); }
static inline void fl_wait(fl_cond *c, fl_mutex *m) { SleepConditionVariableSRW(c, m, INFINITE, 0); }
static inline void fl_signal(fl_cond *c) { WakeConditionVariable(c); }
static inline void fl_signal_all(fl_cond *c) { WakeAllConditionVariable(c); }

static inline int64_t fl_now_ns(void) {
  LARGE_INTEGER frequency, count;
  QueryPerformanceFrequency(&frequency);
  QueryPerformanceCounter(&count);
  return (int64_t)((double)count.QuadPart * (1e9 / (double)frequency.QuadPart));
}

/* Whether this may be the thread that Python runs signals' handlers in. */
static inline int fl_may_be_main(void) { return 1; }

/* Another thread that waits for a processor may have this one. */
static inline void fl_yield(void) { SwitchToThread(); }

/* Starts a detached thread; 0 if there can be none. */
static inline int fl_thread_start(DWORD(WINAPI *body)(void *), void *argument) {
  HANDLE thread = CreateThread(NULL, FL_STACK_BYTES, body, argument, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
  if (!thread)
    return 0;
  CloseHandle(thread);
  return 1;
}

static inline void fl_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
  (void)before, (void)parent, (void)child; /* Windows has no fork */
}

/* New pages straight from the system, and back to it; 0 if there are none. */
static inline void *fl_map(size_t bytes) { return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }
static inline void fl_unmap(void *pages, size_t bytes) {
  (void)bytes;
  VirtualFree(pages, 0, MEM_RELEASE);
}

#else

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <time.h>
#include <unistd.h>
#include "oldest.h"
typedef pthread_mutex_t fl_mutex;
typedef pthread_cond_t fl_cond;
#define FL_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define FL_COND_INIT PTHREAD_COND_INITIALIZER
#define FL_THREAD_RESULT void *
static inline void fl_lock(fl_mutex *m) { pthread_mutex_lock(m); }
static inline void fl_unlock(fl_mutex *m) { pthread_mutex_unlock(m); }
static inline void fl_wait(fl_cond *c, fl_mutex *m) { pthread_cond_wait(c, m); }
static inline void fl_signal(fl_cond *c) { pthread_cond_signal(c); }
static inline void fl_signal_all(fl_cond *c) { pthread_cond_broadcast(c); }

static inline int64_t fl_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Whether this may be the thread that Python runs signals' handlers in: the process's first one, also of a forked child. */
static inline int fl_may_be_main(void) {
#ifdef __linux__
  return syscall(SYS_gettid) == getpid();
#else
  return 1;
#endif
}

/* Starts a detached thread; 0 if there can be none. Signals of the process stay with the threads that expect them; those that
 * a fault of the thread itself raises are let through, for debuggers and for Python's faulthandler. */
static inline int fl_thread_start(void *(*body)(void *), void *argument) {
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
  sigset_t blocked, before;
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes))
    return 0;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, FL_STACK_BYTES);
  sigfillset(&blocked);
  for (unsigned i = 0; i < sizeof own / sizeof own[0]; i++)
    sigdelset(&blocked, own[i]);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  const int failed = pthread_create(&thread, &attributes, body, argument);
  pthread_sigmask(SIG_SETMASK, &before, 0);
  pthread_attr_destroy(&attributes);
  return !failed;
}

/* Another thread that waits for a processor may have this one. */
static inline void fl_yield(void) { sched_yield(); }

static inline void fl_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
  pthread_atfork(before, parent, child);
}

/* New pages straight from the system, and back to it; 0 if there are none. Pages of 2 MB, where the system has them, cost a
 * third of the faults' time (0.17 against 0.52 ms a megabyte on a virtual machine) and fewer misses in the table of pages. They
 * begin at multiples of their size, and so do large blocks, which then have them from the first byte on. */
#define FL_HUGE ((size_t)2 << 20)
static inline size_t fl_pages(size_t bytes) { return bytes < 2 * FL_HUGE ? bytes : (bytes + 0xffff) & ~(size_t)0xffff; }
static inline void *fl_map(size_t bytes) {
  const size_t whole = fl_pages(bytes), more = bytes < 2 * FL_HUGE ? 0 : FL_HUGE;
  char *pages = mmap(0, whole + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
  if (pages == MAP_FAILED)
    return 0;
  if (more) {
    const size_t before = (size_t)(-(uintptr_t)pages & (FL_HUGE - 1));
    if (before)
      munmap(pages, before);
    munmap(pages + before + whole, more - before);
    pages += before;
#ifdef MADV_HUGEPAGE
    madvise(pages, whole, MADV_HUGEPAGE);
#endif
  }
  return pages;
}
static inline void fl_unmap(void *pages, size_t bytes) { munmap(pages, fl_pages(bytes)); }

#endif

/* A breath in a spinning loop, and the control word of the floating-point unit (rounding, flushing of subnormals). */
#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
static inline void fl_pause(void) { _mm_pause(); }
static inline uint64_t fl_float_mode(void) { return _mm_getcsr() & ~0x3fu; /* without the sticky exception flags */ }
static inline void fl_set_float_mode(uint64_t mode) { _mm_setcsr((unsigned)mode); }
#elif defined(__aarch64__)
static inline void fl_pause(void) { __asm__ volatile("isb" ::: "memory"); /* `yield` does nothing on most cores */ }
static inline uint64_t fl_float_mode(void) {
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
static inline void fl_set_float_mode(uint64_t mode) { __asm__ volatile("msr fpcr, %0" ::"r"(mode)); }
#else
static inline void fl_pause(void) {}
static inline uint64_t fl_float_mode(void) { return 0; }
static inline void fl_set_float_mode(uint64_t mode) { (void)mode; }
#endif
#endif
