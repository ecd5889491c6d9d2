/* Passes of a Fourier transform over vectors (Stockham): in[j][places][s] becomes out[places][k][s], j and k < the factor, s pairs of
 * vectors (real parts, imaginary parts), each result multiplied by w^(place k). What is in the lanes never meets: rows, or columns
 * of a larger transform. Products that meet a sum are written as vfma, so a result has the same bits wherever it is computed. */

typedef struct {
  vf re, im;
} fl_vc;

FL_INLINE fl_vc fl_vc_load(const float *p) { return (fl_vc){vload(p), vload(p + VW)}; }
FL_INLINE void fl_vc_store(float *p, fl_vc v) {
  vstore(p, v.re);
  vstore(p + VW, v.im);
}
FL_INLINE fl_vc fl_vc_add(fl_vc a, fl_vc b) { return (fl_vc){a.re + b.re, a.im + b.im}; }
FL_INLINE fl_vc fl_vc_sub(fl_vc a, fl_vc b) { return (fl_vc){a.re - b.re, a.im - b.im}; }
FL_INLINE fl_vc fl_vc_mul(fl_vc a, vf wr, vf wi) {
  return (fl_vc){vfma(-a.im, wi, a.re * wr), vfma(a.re, wi, a.im * wr)};
}
/* a + s b, s a number */
FL_INLINE fl_vc fl_vc_more(fl_vc a, float s, fl_vc b) { return (fl_vc){vfma(vset(s), b.re, a.re), vfma(vset(s), b.im, a.im)}; }
FL_INLINE fl_vc fl_vc_times(fl_vc a, float s) { return (fl_vc){a.re * s, a.im * s}; }
/* -i a */
FL_INLINE fl_vc fl_vc_turn(fl_vc a) { return (fl_vc){a.im, -a.re}; }

FL_INLINE void fl_fft_two(fl_vc *z) {
  const fl_vc a = z[0], b = z[1];
  z[0] = fl_vc_add(a, b), z[1] = fl_vc_sub(a, b);
}

FL_INLINE void fl_fft_three(fl_vc *z) {
  const fl_vc t = fl_vc_add(z[1], z[2]), u = fl_vc_more(z[0], -0.5f, t);
  const fl_vc v = fl_vc_turn(fl_vc_sub(z[1], z[2]));
  const float sine = 0.866025403784438647f;
  z[0] = fl_vc_add(z[0], t), z[1] = fl_vc_more(u, sine, v), z[2] = fl_vc_more(u, -sine, v);
}

FL_INLINE void fl_fft_four(fl_vc *z) {
  const fl_vc a = fl_vc_add(z[0], z[2]), b = fl_vc_sub(z[0], z[2]), c = fl_vc_add(z[1], z[3]);
  const fl_vc d = fl_vc_turn(fl_vc_sub(z[1], z[3]));
  z[0] = fl_vc_add(a, c), z[1] = fl_vc_add(b, d), z[2] = fl_vc_sub(a, c), z[3] = fl_vc_sub(b, d);
}

FL_INLINE void fl_fft_five(fl_vc *z) {
  const float c1 = 0.309016994374947424f, c2 = -0.809016994374947424f, s1 = 0.951056516295153572f, s2 = 0.587785252292473129f;
  const fl_vc a = fl_vc_add(z[1], z[4]), b = fl_vc_add(z[2], z[3]), c = fl_vc_sub(z[1], z[4]), d = fl_vc_sub(z[2], z[3]);
  const fl_vc m1 = fl_vc_more(fl_vc_more(z[0], c1, a), c2, b), m2 = fl_vc_more(fl_vc_more(z[0], c2, a), c1, b);
  const fl_vc n1 = fl_vc_turn(fl_vc_more(fl_vc_times(c, s1), s2, d)), n2 = fl_vc_turn(fl_vc_more(fl_vc_times(c, s2), -s1, d));
  z[0] = fl_vc_add(z[0], fl_vc_add(a, b));
  z[1] = fl_vc_add(m1, n1), z[4] = fl_vc_sub(m1, n1), z[2] = fl_vc_add(m2, n2), z[3] = fl_vc_sub(m2, n2);
}

FL_INLINE void fl_fft_small(int radix, fl_vc *z) {
  if (radix == 2)
    fl_fft_two(z);
  else if (radix == 3)
    fl_fft_three(z);
  else if (radix == 4)
    fl_fft_four(z);
  else
    fl_fft_five(z);
}

FL_INLINE void fl_fft_place(int radix, const float *in, float *out, int64_t apart, int64_t s, const float *w) {
  for (int64_t q = 0; q < s; q++, in += 2 * VW, out += 2 * VW) {
    fl_vc z[5];
    FL_UNROLL for (int j = 0; j < radix; j++) z[j] = fl_vc_load(in + j * apart);
    fl_fft_small(radix, z);
    fl_vc_store(out, z[0]);
    FL_UNROLL for (int k = 1; k < radix; k++)
      fl_vc_store(out + k * s * 2 * VW, w == NULL ? z[k] : fl_vc_mul(z[k], vset(w[2 * k - 2]), vset(w[2 * k - 1])));
  }
}

FL_INLINE void fl_fft_pass_of(int radix, const float *in, float *out, int64_t places, int64_t s, const float *w) {
  const int64_t row = s * 2 * VW;
  fl_fft_place(radix, in, out, places * row, s, NULL); /* the first place's roots are 1 */
  for (int64_t p = 1; p < places; p++)
    fl_fft_place(radix, in + p * row, out + p * radix * row, places * row, s, w + 2 * p * (radix - 1));
}

static void fl_fft_pass2(const float *in, float *out, int64_t places, int64_t s, const float *w) {
  fl_fft_pass_of(2, in, out, places, s, w);
}
static void fl_fft_pass3(const float *in, float *out, int64_t places, int64_t s, const float *w) {
  fl_fft_pass_of(3, in, out, places, s, w);
}
static void fl_fft_pass4(const float *in, float *out, int64_t places, int64_t s, const float *w) {
  fl_fft_pass_of(4, in, out, places, s, w);
}
static void fl_fft_pass5(const float *in, float *out, int64_t places, int64_t s, const float *w) {
  fl_fft_pass_of(5, in, out, places, s, w);
}

/* Any odd factor up to 31, by the sum: sums and differences of opposite values share their products. */
static void fl_fft_pass_odd(int radix, const float *in, float *out, int64_t places, int64_t s, const float *w) {
  const int64_t row = s * 2 * VW, half = radix / 2;
  const float *roots = w + 2 * places * (radix - 1);
  fl_vc sum[16], diff[16];
  for (int64_t p = 0; p < places; p++)
    for (int64_t q = 0; q < s; q++) {
      const float *x = in + p * row + q * 2 * VW;
      float *y = out + p * radix * row + q * 2 * VW;
      const fl_vc zero = fl_vc_load(x);
      fl_vc all = zero;
      for (int64_t j = 1; j <= half; j++) {
        const fl_vc a = fl_vc_load(x + j * places * row), b = fl_vc_load(x + (radix - j) * places * row);
        sum[j] = fl_vc_add(a, b), diff[j] = fl_vc_sub(a, b);
        all = fl_vc_add(all, sum[j]);
      }
      fl_vc_store(y, all);
      for (int64_t k = 1; k <= half; k++) {
        fl_vc even = zero, odd = {{0}, {0}};
        for (int64_t j = 1, at = k; j <= half; j++, at = at + k < radix ? at + k : at + k - radix) {
          even = fl_vc_more(even, roots[2 * at], sum[j]);
          odd = fl_vc_more(odd, -roots[2 * at + 1], diff[j]);
        }
        odd = fl_vc_turn(odd);
        const float *u = w + 2 * (p * (radix - 1) + k - 1), *v = w + 2 * (p * (radix - 1) + radix - k - 1);
        fl_vc_store(y + k * row, fl_vc_mul(fl_vc_add(even, odd), vset(u[0]), vset(u[1])));
        fl_vc_store(y + (radix - k) * row, fl_vc_mul(fl_vc_sub(even, odd), vset(v[0]), vset(v[1])));
      }
    }
}

/* Transforms of part->n points of `columns` pairs of vectors: [n][columns]. Uses both buffers; returns which has the result. */
static float *fl_fft_part_run(const fl_fft_part *part, float *x, float *y, int64_t columns) {
  int64_t places = part->n, s = columns;
  for (int i = 0; i < part->passes; i++) {
    const int radix = part->radix[i];
    const float *w = part->roots[i];
    places /= radix;
    switch (radix) {
    case 2: fl_fft_pass2(x, y, places, s, w); break;
    case 3: fl_fft_pass3(x, y, places, s, w); break;
    case 4: fl_fft_pass4(x, y, places, s, w); break;
    case 5: fl_fft_pass5(x, y, places, s, w); break;
    default: fl_fft_pass_odd(radix, x, y, places, s, w);
    }
    s *= radix;
    float *t = x;
    x = y, y = t;
  }
  return x;
}
