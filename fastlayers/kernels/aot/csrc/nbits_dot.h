/* The instruction that adds products of quads of bytes to int32 exactly, where some processors of a level have one: FL_NBITS_DOT, for whose
 * functions FL_DOT_TARGET asks, and whether this one does. Of weights of 8 bits, NEON's takes numbers less 128: FL_NBITS_SIGNED. */
#if defined(__AVX512F__) /* AVX512-VNNI */
#define FL_DOT_TARGET __attribute__((target("avx512vnni")))
#define FL_NBITS_DOT(acc, w, x) (vi) _mm512_dpbusd_epi32((__m512i)(acc), (__m512i)(w), (__m512i)(x))
static int fl_nbits_has_dot(void) { return fl_has_dot(); }

#elif VW == 8 && defined(FL_NBITS_EVEX) /* for tests: the same on AVX-512 processors, most of which lack AVX-VNNI's encoding of it */
#define FL_DOT_TARGET __attribute__((target("avx512vnni,avx512vl")))
#define FL_NBITS_DOT(acc, w, x) (vi) _mm256_dpbusd_epi32((__m256i)(acc), (__m256i)(w), (__m256i)(x))
static int fl_nbits_has_dot(void) { return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl"); }

#elif VW == 8 && (__GNUC__ >= 11 || __clang_major__ >= 12) /* AVX-VNNI: Alder Lake, Zen 5, Sierra Forest and onwards */
#include <cpuid.h>
#define FL_DOT_TARGET __attribute__((target("avxvnni")))
#define FL_NBITS_DOT(acc, w, x) (vi) _mm256_dpbusd_avx_epi32((__m256i)(acc), (__m256i)(w), (__m256i)(x))
static int fl_nbits_has_dot(void) {
  static int known; /* 1: no, 2: yes */
  int found = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!found) {
    unsigned a = 0, b, c, d;
    found = __get_cpuid_count(7, 0, &a, &b, &c, &d) && a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4) ? 2 : 1;
    __atomic_store_n(&known, found, __ATOMIC_RELAXED);
  }
  return found == 2;
}

#elif defined(__aarch64__) /* SDOT: Cortex-A76, Neoverse N1, Apple's M1 and onwards */
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__clang__)
#define FL_DOT_TARGET __attribute__((target("dotprod")))
#else
#define FL_DOT_TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
#define FL_NBITS_DOT(acc, w, x) (vi) vdotq_s32((int32x4_t)(acc), (int8x16_t)(w), (int8x16_t)(x))
#define FL_NBITS_SIGNED
static int fl_nbits_has_dot(void) {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) & 1ul << 20 /* HWCAP_ASIMDDP */) != 0;
#elif defined(__APPLE__) || defined(__ARM_FEATURE_DOTPROD)
  return 1;
#else
  return 0;
#endif
}
#endif
