/* Can this processor, under this operating system, run a level? Asked before the level's extension is loaded. */
#ifndef FL_CPU_H
#define FL_CPU_H
#include <string.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* 1, 3 or 4: the x86-64 micro-architecture level, as far as the kernels need it */
static int fl_x86_level(void) {
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d))
    return 1;
  const unsigned need = 1u << 12 /* FMA */ | 1u << 27 /* OSXSAVE */ | 1u << 28 /* AVX */ | 1u << 29 /* F16C */ | 1u << 22 /* MOVBE */;
  if ((c & need) != need)
    return 1;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 0x06) != 0x06) /* the system saves xmm and ymm */
    return 1;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return 1;
  const unsigned v3 = 1u << 3 /* BMI1 */ | 1u << 5 /* AVX2 */ | 1u << 8 /* BMI2 */;
  if ((b & v3) != v3)
    return 1;
  if (!__get_cpuid(0x80000001, &a, &low, &c, &d) || !(c & 1u << 5) /* LZCNT */)
    return 1;
  const unsigned v4 = 1u << 16 /* F */ | 1u << 17 /* DQ */ | 1u << 28 /* CD */ | 1u << 30 /* BW */ | 1u << 31 /* VL */;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (b & v4) == v4 && (low & 0xe0) == 0xe0 /* the system saves masks and zmm */ ? 4 : 3;
}

/* AMX's tiles of bytes and of bfloat16. They are 8 KB more to keep of a thread, which Linux does for processes that asked, and grants unless a thread
 * has a signal stack that is too small for them. Once granted it holds for all threads, and for children by fork. */
static int fl_has_tiles(void) {
#if defined(__linux__) && defined(__LP64__)
  unsigned a, b, c, d = 0, low, high;
  const unsigned need = 1u << 22 /* AMX-BF16 */ | 1u << 24 /* AMX-TILE */ | 1u << 25 /* AMX-INT8 */;
  if (fl_x86_level() < 4 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & need) != need)
    return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & 0x60000) == 0x60000 /* the system saves shapes and tiles */ && syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* tiles */) == 0;
#else
  return 0;
#endif
}
static int fl_usable(const char *level) {
  const int has = fl_x86_level();
  if (!strcmp(level, "x86_amx"))
    return fl_has_tiles();
  return (!strcmp(level, "x86_v1") && has >= 1) || (!strcmp(level, "x86_v3") && has >= 3) || (!strcmp(level, "x86_v4") && has >= 4);
}
#elif defined(__aarch64__) || defined(_M_ARM64)
static int fl_usable(const char *level) { return !strcmp(level, "neon"); }
#else
static int fl_usable(const char *level) { (void)level; return 0; }
#endif
#endif
