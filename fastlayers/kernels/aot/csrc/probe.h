/* What one core can do at most, measured by the code of the level itself: the yardstick of bench/ and of `profile`. */

/* Independent multiply-add chains, enough to cover the latency; returns the multiply-adds done (2 operations each). */
static __attribute__((noinline)) double fl_f32_probe_fma(int64_t rounds) {
  enum { CHAINS = 12 };
  vf acc[CHAINS];
  vf b = vset(0.999f), c = vset(1e-3f);
  /* The empty asm keeps each value in a register and hides what it is, so nothing is folded and nothing spilled. */
#if defined(__x86_64__)
#define FL_OPAQUE(v) __asm__ volatile("" : "+x"(v))
#if VW == 16
#undef FL_OPAQUE
#define FL_OPAQUE(v) __asm__ volatile("" : "+v"(v))
#endif
#else
#define FL_OPAQUE(v) __asm__ volatile("" : "+w"(v))
#endif
  FL_UNROLL for (int i = 0; i < CHAINS; i++) { acc[i] = vset(0.1f * (float)i); }
  FL_OPAQUE(b);
  FL_OPAQUE(c);
  for (int64_t k = 0; k < rounds; k++)
    FL_UNROLL for (int i = 0; i < CHAINS; i++) {
      acc[i] = vfma(acc[i], b, c);
      FL_OPAQUE(acc[i]);
    }
  vf sum = acc[0];
  FL_UNROLL for (int i = 1; i < CHAINS; i++) sum += acc[i];
  FL_OPAQUE(sum);
  return (double)rounds * CHAINS * VW;
}

/* Reads n consecutive floats with eight independent sums, and returns their sum. */
static __attribute__((noinline)) float fl_f32_probe_read(const float *x, int64_t n) {
  enum { STREAMS = 8 };
  vf acc[STREAMS];
  FL_UNROLL for (int i = 0; i < STREAMS; i++) acc[i] = vset(0);
  int64_t k = 0;
  for (; k + STREAMS * VW <= n; k += STREAMS * VW)
    FL_UNROLL for (int i = 0; i < STREAMS; i++) acc[i] += vload(x + k + i * VW);
  vf sum = acc[0];
  FL_UNROLL for (int i = 1; i < STREAMS; i++) sum += acc[i];
  float total = vsum(sum);
  for (; k < n; k++)
    total += x[k];
  return total;
}
