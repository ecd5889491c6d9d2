/* Functions that need more than the precision of floats on the way: VW / 2 at a time, as vectors of doubles. Every float is taken, and
 * the error is at most 0.51 units in the last place of the result, subnormal ones included. */
#ifndef FL_DOUBLE_H
#define FL_DOUBLE_H

#define VD (VW / 2)
typedef float vh __attribute__((vector_size(VD * 4)));
typedef double vd __attribute__((vector_size(VD * 8)));
typedef int64_t vl __attribute__((vector_size(VD * 8)));
typedef uint64_t vul __attribute__((vector_size(VD * 8)));

#define FL_NEAREST 0x1.8p52 /* adding it leaves the nearest integer in the low bits of the sum */

FL_INLINE vd vsetd(double x) { return x - (vd){0}; }
FL_INLINE vd vseld(vl m, vd a, vd b) { return (vd)((m & (vl)a) | (~m & (vl)b)); }
FL_INLINE vul vsetul(uint64_t x) { return x - (vul){0}; }
FL_INLINE vd vabsd(vd x) { return (vd)((vul)x & 0x7fffffffffffffff); }

/* a^b, right as C's pow is: 1 for any power of 1 and for the power 0, NaN included; powers of negative values for whole exponents
 * alone, with their signs; zeros, infinities. */
FL_INLINE vh vpower(vh base, vh exponent) {
  const vd a = __builtin_convertvector(base, vd), b = __builtin_convertvector(exponent, vd);
  const vd inf = vsetd((double)INFINITY), none = vsetd((double)NAN), x = vabsd(a);
  const uint64_t half_root = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000;
  /* x = m 2^k, m in [sqrt(1/2), sqrt(2)); 2^52 + (k + 1023) makes a double of an integer */
  const vul k = ((vul)x - half_root + one) >> 52;
  const vd whole_part = (vd)(k | 0x4330000000000000) - (0x1p52 + 1023), m = (vd)((vul)x - (k << 52) + one);
  /* log(m) = 2 atanh(s), a series in z = s^2 < 0.0295; then log2(x), where the ends of the values have limits */
  const vd s = (m - 1) / (m + 1), z = s * s;
  const vd series = 1 + z * (1 / 3. + z * (1 / 5. + z * (1 / 7. + z * (1 / 9. + z * (1 / 11. + z * (1 / 13.))))));
  vd t = whole_part + s * series * 0x1.71547652b82fep+1;
  t = vseld((vl)(x == 0), -inf, vseld((vl)(x == inf), inf, t));
  t = vseld((vl)(x == 1), vsetd(0), b * t);
  /* 2^t, as a float 0 below 2^-200 and infinite above 2^200; what is not a number is seen to at the end */
  t = vseld((vl)(t > -200), t, vsetd(-200));
  t = vseld((vl)(t < 200), t, vsetd(200));
  const vd rounded = t + FL_NEAREST, u = (t - (rounded - FL_NEAREST)) * 0x1.62e42fefa39efp-1;
  vd e = 1 / 5040. + u * (1 / 40320. + u * (1 / 362880.));
  e = 1 / 6. + u * (1 / 24. + u * (1 / 120. + u * (1 / 720. + u * e)));
  e = 1 + u * (1 + u * (0.5 + u * e));
  vd y = e * (vd)(((vul)rounded << 52) + one);
  /* floats from 2^24 on are even integers, infinity too */
  const vl large = (vl)(vabsd(b) >= 0x1p24);
  const vl whole = large | (vl)((b + FL_NEAREST) - FL_NEAREST == b), even = large | (vl)((0.5 * b + FL_NEAREST) - FL_NEAREST == 0.5 * b);
  y = (vd)((vul)y | ((vul)a & (vul)(whole & ~even) & 0x8000000000000000));
  y = vseld((vl)(a < 0) & (vl)(x < inf) & ~whole, none, y);
  y = vseld((vl)(a != a) | (vl)(b != b), none, y);
  y = vseld((vl)(b == 0) | (vl)(a == 1), vsetd(1), y);
  return __builtin_convertvector(y, vh);
}

/* y[i] = a[i * as]^b[i * bs], as and bs 1 or 0 */
static __attribute__((noinline)) void fl_power_row(const float *a, int as, const float *b, int bs, float *y, int64_t n) {
  vh p = {0}, q = {0};
  for (int i = 0; i < VD; i++)
    p[i] = *a, q[i] = *b;
  int64_t i = 0;
  for (; i + VD <= n; i += VD) {
    if (as)
      memcpy(&p, a + i, sizeof p);
    if (bs)
      memcpy(&q, b + i, sizeof q);
    const vh r = vpower(p, q);
    memcpy(y + i, &r, sizeof r);
  }
  if (i == n)
    return;
  for (int64_t j = i; j < n; j++)
    p[j - i] = a[j * as], q[j - i] = b[j * bs];
  const vh r = vpower(p, q);
  for (int64_t j = i; j < n; j++)
    y[j] = r[j - i];
}

/* The rest of |x| for a finite x from 2^28 on, divided by pi/2, and the quotient's last two bits. x = m 2^e; the bits of 2/pi that are
 * worth 4 or more after the multiplication by 2^e do not count, the 96 bits after those are enough. */
static double fl_far_angle(float x, int64_t *quadrant) {
  static const uint32_t two_over_pi[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint64_t m = (bits & 0x7fffff) | 0x800000;
  const int first = (int)(bits >> 23 & 255) - 152; /* e - 2 */
  uint64_t window[3];
  for (int i = 0; i < 3; i++) {
    const int at = first / 32 + i, shift = first % 32;
    window[i] = (uint32_t)(((uint64_t)two_over_pi[at] << 32 | two_over_pi[at + 1]) << shift >> 32);
  }
  const uint64_t product = (m * window[0] << 32) + m * window[1] + (m * window[2] >> 32); /* 2 bits, then a fraction of 62 */
  const uint64_t nearest = (product + (1ull << 61)) >> 62;
  *quadrant = (int64_t)nearest;
  return (double)(int64_t)(product - (nearest << 62)) * 0x1.921fb54442d18p-62;
}

/* sin(x), or cos(x), whose quarter is one ahead */
static __attribute__((noinline)) vh vsine(vh x, int64_t ahead) {
  const vd a = vabsd(__builtin_convertvector(x, vd));
  const vd rounded = a * 0x1.45f306dc9c883p-1 + FL_NEAREST, n = rounded - FL_NEAREST;
  vul quadrant = (vul)rounded;
  /* pi/2 in pieces of 25, 25 and 53 bits: the first two products are exact, and so are their differences */
  vd r = a - n * 0x1.921fb5p+0;
  r = r - n * 0x1.110b46p-26;
  r = r - n * 0x1.1a62633145c07p-54;
  const vl far = (vl)(a >= 0x1p28) & (vl)(a < (double)INFINITY);
  int64_t any = 0;
  FL_UNROLL for (int i = 0; i < VD; i++) any |= far[i];
  if (any)
    for (int i = 0; i < VD; i++)
      if (far[i]) {
        int64_t q;
        r[i] = fl_far_angle(x[i], &q);
        quadrant[i] = (uint64_t)q;
      }
  /* sine of r with the sign of x, and cosine, |r| <= pi/4; an odd quarter exchanges them */
  const vd z = r * r;
  vd s = 1 / 362880. + z * (-1 / 39916800. + z * (1 / 6227020800.));
  s = r + r * z * (-1 / 6. + z * (1 / 120. + z * (-1 / 5040. + z * s)));
  vd c = -1 / 3628800. + z * (1 / 479001600. + z * (-1 / 87178291200.));
  c = 1 + z * (-0.5 + z * (1 / 24. + z * (-1 / 720. + z * (1 / 40320. + z * c))));
  const vul sign = ahead ? vsetul(0) : (vul)__builtin_convertvector(x, vd) & 0x8000000000000000;
  quadrant = quadrant + (uint64_t)ahead;
  const vd y = vseld(-(vl)(quadrant & 1), c, s);
  return __builtin_convertvector((vd)((vul)y ^ sign ^ (quadrant & 2) << 62), vh);
}
#endif
