/* Attention for up to FL_QUERIES queries of one head: out = softmax(scale q k^T + mask) v, without ever writing all scores to memory.
 *
 * Queries are in the lanes. For FL_KEYS keys at a time: their scores [key][query] = k (scale q)^T; down each lane the largest, the
 * exponentials and their sum; then sums += exponentials v. Keys and values are read where they are (values whose width is no multiple
 * of 16 are copied). Where the largest score grows, what there is shrinks by exp(old - new).
 *
 * Sixteen queries are a strip, and each strip has a window of keys; nothing outside of it is computed. A window leaves out keys whose
 * exponentials would be exactly 0: those that causality forbids, and those at either end that the mask puts so far down that no score
 * can lift them. Since 0 times infinity is NaN, all windows are whole where k, v or q hold anything that is not finite.
 *
 * Order of every sum: over d in blocks of FL_KC as everywhere; exponentials of a block in four chains that alternate; keys of a
 * block in one chain; blocks, which begin at multiples of FL_KEYS, in order. So a query's result depends on that query alone, and a
 * key more or less that has no weight changes nothing. */

/* What is known while the blocks are walked through, in strips and in lanes. */
typedef struct {
  int64_t strips, lanes, width; /* lanes = 16 strips; width: e in whole panels */
  float *qt;                    /* [d][lanes]: scale q, transposed, lanes without a query zero */
  float *s;                     /* [FL_KEYS][lanes]: scores, then exponentials */
  float *sums;                  /* [lanes][width] */
  float *padded;                /* [FL_KEYS][width]: values of the block, where e is not width */
  int64_t window[FL_QUERIES / FL_PANEL][2];
  int64_t from[FL_QUERIES / FL_PANEL], to[FL_QUERIES / FL_PANEL]; /* the window within the block */
  int started[FL_QUERIES / FL_PANEL];                             /* are there sums yet? */
  float largest[FL_QUERIES], total[FL_QUERIES], shrink[FL_QUERIES];
} fl_attention_state;

FL_INLINE int64_t fl_clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* the largest |x| as bits: those of NaN are above those of infinity */
FL_INLINE vi fl_larger_bits(vi a, vi b) { return vseli((vi)(a > b), a, b); }
FL_INLINE int32_t fl_largest_bits(vi v) {
  int32_t lane[VW], most = 0;
  memcpy(lane, &v, sizeof lane);
  for (int i = 0; i < VW; i++)
    most = lane[i] > most ? lane[i] : most;
  return most;
}

static float fl_f32_magnitude(const float *x, int64_t n) {
  vi a = vseti(0), b = a;
  int64_t i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) {
    a = fl_larger_bits(a, vbits(vabs(vload(x + i))));
    b = fl_larger_bits(b, vbits(vabs(vload(x + i + VW))));
  }
  for (; i < n; i += VW)
    a = fl_larger_bits(a, vbits(vabs(n - i < VW ? vget_part(x + i, n - i, 0) : vload(x + i))));
  const int32_t most = fl_largest_bits(fl_larger_bits(a, b));
  float result;
  memcpy(&result, &most, 4);
  return result;
}

/* First the largest number of every tile, and in passing those of the rows; then its distance from the lowest of these. What rounding
 * may do where a score is added to either is taken off the distance. Rows of nothing but -infinity do not count. */
static void fl_f32_attention_tiles(const float *mask, int64_t stride, int64_t rows, int64_t n, float *tiles) {
  const vf lowest = vset(-(float)INFINITY);
  vf row[FL_PANEL];
  for (int64_t i = 0; i < rows; i++)
    row[i] = lowest;
  for (int64_t j = 0; j < n; j += FL_PANEL) {
    vf most = lowest;
    vi bits = vseti(0);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t l = j; l < j + FL_PANEL && l < n; l += VW) {
        const float *at = mask + i * stride + l;
        const vf x = n - l < VW ? vget_part(at, n - l, at[0]) : vload(at);
        row[i] = vmax(row[i], x);
        most = vmax(most, x);
        bits = fl_larger_bits(bits, vbits(vabs(x)));
      }
    FL_FOLD(most, vmax);
    const int32_t magnitude = fl_largest_bits(bits);
    /* For now: NaN stands for zeros, infinity for anything. */
    tiles[j / FL_PANEL] = magnitude == 0 ? (float)NAN : magnitude > 0x7f800000 ? (float)INFINITY : most[0];
  }
  float low = (float)INFINITY;
  for (int64_t i = 0; i < rows; i++) {
    FL_FOLD(row[i], vmax);
    if (row[i][0] < low && row[i][0] > -(float)INFINITY)
      low = row[i][0];
  }
  for (int64_t t = 0; t < (n + FL_PANEL - 1) / FL_PANEL; t++) {
    const float most = tiles[t], far = (low - most) - 0x1p-22f * (fabsf(low) + fabsf(most));
    tiles[t] = most != most ? FL_TILE_ZERO : most == -(float)INFINITY ? (float)INFINITY : far > 0 ? far : FL_TILE_ANY;
  }
}

static void fl_attention_queries(const fl_attention *p, fl_attention_state *w) {
  if (p->rows < w->lanes)
    memset(w->qt, 0, (size_t)(p->d * w->lanes) * 4);
  fl_f32_transpose(p->q, p->qi, w->qt, w->lanes, p->rows, p->d);
  for (int64_t i = 0; i < p->d * w->lanes; i += VW)
    vstore(w->qt + i, vload(w->qt + i) * p->scale);
}

/* The largest |score| there can be: sum |q| largest |k|. Infinity or NaN where something is not finite. */
static float fl_attention_bound(const fl_attention *p) {
  float most = 0;
  for (int64_t i = 0; i < p->rows; i++) {
    vf sum = vset(0);
    for (int64_t t = 0; t < p->d; t += VW)
      sum += vabs(p->d - t < VW ? vget_part(p->q + i * p->qi + t, p->d - t, 0) : vload(p->q + i * p->qi + t));
    const float total = vsum(sum);
    if (!(total < (float)INFINITY))
      return (float)INFINITY;
    most = most > total ? most : total;
  }
  return most * fabsf(p->scale) * p->bound;
}

static void fl_attention_windows(const fl_attention *p, int64_t (*window)[2]) {
  const int everything = p->last >= p->keys && !p->tiles;
  const float bound = everything ? 0 : fl_attention_bound(p);
  const int finite = bound < 1e37f;
  /* Rounding of the bound, and of the scores that it is for, is far below a hundredth; exp(x) is 0 from x = -88 on. */
  const float far = 2.02f * bound + 90;
  for (int64_t u = 0; u * FL_PANEL < p->rows; u++) {
    const int64_t queries = fl_clamp(p->rows - u * FL_PANEL, 0, FL_PANEL);
    int64_t begin = 0, end = finite ? fl_clamp(p->last + u * FL_PANEL + queries, 0, p->keys) : p->keys;
    if (p->tiles && finite) {
      const float *tiles = p->tiles + u * p->tiles_strip;
      while (begin < end && tiles[begin / FL_PANEL] > far)
        begin += FL_PANEL;
      while (begin < end && tiles[(end - 1) / FL_PANEL] > far)
        end = (end - 1) / FL_PANEL * FL_PANEL;
    }
    window[u][0] = begin;
    window[u][1] = end;
  }
}

/* The values of n keys from j0 on, with stride `apart`: where they are, or copied to `padded` with zeros between them. */
static const float *fl_attention_whole_panels(const fl_attention *p, int64_t j0, int64_t n, int64_t width, float *padded, int64_t *apart) {
  const float *v = p->v + j0 * p->vj;
  *apart = p->vj;
  if (width == p->e)
    return v;
  *apart = width;
  for (int64_t j = 0; j < n; j++) {
    memcpy(padded + j * width, v + j * p->vj, (size_t)p->e * 4);
    memset(padded + j * width + p->e, 0, (size_t)(width - p->e) * 4);
  }
  return padded;
}

/* The sum of values whose weights are all 0: NaN where a value is not finite. */
static void fl_attention_zeros(const fl_attention *p, float *out) {
  memset(out, 0, (size_t)p->e * 4);
  for (int64_t j = 0; j < p->keys; j++)
    for (int64_t t = 0; t < p->e; t++)
      out[t] += 0 * p->v[j * p->vj + t];
}

/* out = sums / total. The largest exponential of a row is 1: where the total is 0 the row saw no key. */
static void fl_attention_results(const fl_attention *p, const float *sums, int64_t width, const float *total) {
  const float *zeros = 0;
  for (int64_t i = 0; i < p->rows; i++) {
    if (p->zeros && !(total[i] > 0)) {
      if (zeros)
        memcpy(p->out + i * p->oi, zeros, (size_t)p->e * 4);
      else
        fl_attention_zeros(p, p->out + i * p->oi);
      zeros = p->out + i * p->oi;
      continue;
    }
    const int none = total[i] == 0;
    const float scale = 1 / total[i];
    for (int64_t j = 0; j < p->e; j++)
      p->out[i * p->oi + j] = none ? p->empty : sums[i * width + j] * scale;
  }
}

#include "attention_few.h"

/* Scores of the block's keys j0 <= j < j1. A run of keys is taken as far as the same strips have it in their windows; a strip
 * between two others is computed with them, whatever its window. */
static void fl_attention_scores(const fl_attention *p, const fl_attention_state *w, int64_t j0, int64_t j1) {
  for (int64_t j = j0, next; j < j1; j = next) {
    int64_t first = w->strips, last = -1;
    next = j1;
    for (int64_t u = 0; u < w->strips; u++) {
      if (w->from[u] > j && w->from[u] < next)
        next = w->from[u];
      if (w->to[u] > j && w->to[u] < next)
        next = w->to[u];
      if (w->from[u] <= j && j < w->to[u]) {
        first = first < u ? first : u;
        last = u;
      }
    }
    fl_direct product = {.ai = p->kj, .at = p->kt, .bt = w->lanes, .ldc = w->lanes, .m = next - j, .n = (last - first + 1) * FL_PANEL};
    product.c = w->s + (j - j0) * w->lanes + first * FL_PANEL;
    for (int64_t t = 0; product.n > 0 && (t == 0 || t < p->d); t += FL_KC) { /* once even if d is 0 */
      product.a = p->k + j * p->kj + t * p->kt;
      product.b = w->qt + t * w->lanes + first * FL_PANEL;
      product.k = p->d - t < FL_KC ? p->d - t : FL_KC;
      product.accumulate = t > 0;
      fl_f32_direct(&product);
    }
  }
}

/* s[j][..] += mask for the strip's window in the block from j0 on, tiles of zeros left out. */
static void fl_attention_mask(const fl_attention *p, const fl_attention_state *w, int64_t u, int64_t j0) {
  const int64_t rows = fl_clamp(p->rows - u * FL_PANEL, 0, FL_PANEL);
  const float *mask = p->mask + u * FL_PANEL * p->mi;
  float turned[FL_PANEL * FL_PANEL] = {0};
  if (p->mj == 0)
    for (int64_t i = 0; i < rows; i++)
      turned[i] = mask[i * p->mi];
  for (int64_t j = w->from[u], next; j < w->to[u]; j = next) {
    next = fl_clamp((j / FL_PANEL + 1) * FL_PANEL, 0, w->to[u]);
    if (p->tiles && p->tiles[u * p->tiles_strip + j / FL_PANEL] == FL_TILE_ZERO)
      continue;
    if (p->mj && p->mi)
      fl_f32_transpose(mask + j, p->mi, turned, FL_PANEL, rows, next - j);
    for (int64_t k = j; k < next; k++)
      for (int64_t l = 0; l < FL_PANEL; l += VW) {
        float *x = w->s + (k - j0) * w->lanes + u * FL_PANEL + l;
        const vf add = p->mj == 0 ? vload(turned + l) : p->mi == 0 ? vset(mask[k]) : vload(turned + (k - j) * FL_PANEL + l);
        vstore(x, vload(x) + add);
      }
  }
}

/* -infinity where a key comes after the last that a query sees */
static void fl_attention_causal(const fl_attention *p, const fl_attention_state *w, int64_t u, int64_t j0) {
  const int64_t last = p->last + u * FL_PANEL; /* of the strip's first query */
  for (int64_t j = last + 1 > w->from[u] ? last + 1 : w->from[u]; j < w->to[u]; j++)
    for (int64_t l = 0; l < FL_PANEL; l += VW) {
      float *x = w->s + (j - j0) * w->lanes + u * FL_PANEL + l;
      vstore(x, vsel(vmask_part(fl_clamp(j - last - l, 0, VW)), vset(-(float)INFINITY), vload(x)));
    }
}

/* Softmax of a strip's window of n keys, down the lanes of s. */
static void fl_attention_softmax(float *s, int64_t lanes, int64_t n, float *largest, float *total, float *shrink) {
  const vf lowest = vset(-(float)INFINITY);
  const vf old = vload(largest);
  vf m0 = old, m1 = lowest, m2 = lowest, m3 = lowest;
  float *x = s;
  int64_t j = 0;
  for (; j + 4 <= n; j += 4, x += 4 * lanes) {
    m0 = vmax(m0, vload(x));
    m1 = vmax(m1, vload(x + lanes));
    m2 = vmax(m2, vload(x + 2 * lanes));
    m3 = vmax(m3, vload(x + 3 * lanes));
  }
  for (; j < n; j++, x += lanes)
    m0 = vmax(m0, vload(x));
  m0 = vmax(vmax(m0, m1), vmax(m2, m3));
  vstore(largest, m0);
  /* Nothing but -infinity so far: any number will do, all exponentials are 0. */
  const vf m = vsel((vi)(m0 == lowest), vset(0), m0);
  vf sum[4] = {{0}, {0}, {0}, {0}};
  for (j = 0, x = s; j + 4 <= n; j += 4)
    FL_UNROLL for (int i = 0; i < 4; i++, x += lanes) {
      const vf e = vexp_flush(vload(x) - m);
      vstore(x, e);
      sum[i] += e;
    }
  FL_UNROLL for (int i = 0; i < 3; i++)
    if (j + i < n) {
      const vf e = vexp_flush(vload(x + i * lanes) - m);
      vstore(x + i * lanes, e);
      sum[i] += e;
    }
  const vf f = vexp_flush(old - m);
  vstore(shrink, f);
  vstore(total, vfma(vload(total), f, (sum[0] + sum[1]) + (sum[2] + sum[3])));
}

/* sums = sums * shrink + exponentials v, for strips with the same window at once; v is the value of key j0 */
static void fl_attention_values(const fl_attention *p, fl_attention_state *w, const float *v, int64_t ldv, int64_t j0) {
  for (int64_t u = 0, next; u < w->strips; u = next) {
    next = u + 1;
    if (w->from[u] >= w->to[u])
      continue;
    while (next < w->strips && w->from[next] == w->from[u] && w->to[next] == w->to[u] && w->started[next] == w->started[u])
      next++;
    const int64_t row = u * FL_PANEL, key = w->from[u] - j0;
    const fl_direct product = {.a = w->s + key * w->lanes + row,
                               .ai = 1,
                               .at = w->lanes,
                               .b = v + key * ldv,
                               .bt = ldv,
                               .c = w->sums + row * w->width,
                               .ldc = w->width,
                               .m = (next * FL_PANEL < p->rows ? next * FL_PANEL : p->rows) - row,
                               .n = w->width,
                               .k = w->to[u] - w->from[u],
                               .factor = w->started[u] ? w->shrink + row : 0};
    fl_f32_direct(&product);
    for (int64_t i = u; i < next; i++)
      w->started[i] = 1;
  }
}

static void fl_attention_block(const fl_attention *p, fl_attention_state *w, int64_t block) {
  int64_t j0 = block + FL_KEYS, j1 = block; /* keys that any strip looks at */
  for (int64_t u = 0; u < w->strips; u++) {
    w->from[u] = fl_clamp(w->window[u][0], block, block + FL_KEYS);
    w->to[u] = fl_clamp(w->window[u][1], block, block + FL_KEYS);
    if (w->from[u] < w->to[u]) {
      j0 = j0 < w->from[u] ? j0 : w->from[u];
      j1 = j1 > w->to[u] ? j1 : w->to[u];
    }
  }
  if (j0 >= j1)
    return;
  fl_attention_scores(p, w, j0, j1);
  for (int64_t u = 0; u < w->strips; u++) {
    if (w->from[u] >= w->to[u])
      continue;
    if (p->mask)
      fl_attention_mask(p, w, u, j0);
    fl_attention_causal(p, w, u, j0);
    for (int64_t i = u * FL_PANEL; i < (u + 1) * FL_PANEL; i += VW)
      fl_attention_softmax(w->s + (w->from[u] - j0) * w->lanes + i, w->lanes, w->to[u] - w->from[u], w->largest + i, w->total + i,
                           w->shrink + i);
  }
  int64_t apart;
  const float *v = fl_attention_whole_panels(p, j0, j1 - j0, w->width, w->padded, &apart);
  fl_attention_values(p, w, v, apart, j0);
}

static void fl_f32_attention(const fl_attention *p) {
  if (p->rows <= FL_FEW_QUERIES) {
    if (p->rows > 0)
      fl_attention_rows(p);
    return;
  }
  fl_attention_state w;
  w.strips = (p->rows + FL_PANEL - 1) / FL_PANEL;
  w.lanes = w.strips * FL_PANEL;
  w.width = (p->e + FL_PANEL - 1) / FL_PANEL * FL_PANEL;
  w.qt = p->scratch;
  w.s = w.qt + p->d * w.lanes;
  w.sums = w.s + FL_KEYS * w.lanes;
  w.padded = w.sums + w.lanes * w.width;
  fl_attention_queries(p, &w);
  fl_attention_windows(p, w.window);
  for (int64_t u = 0; u < w.strips; u++)
    w.started[u] = 0;
  for (int64_t i = 0; i < w.lanes; i++) {
    w.largest[i] = -(float)INFINITY;
    w.total[i] = 0;
  }
  for (int64_t block = 0; block < p->keys; block += FL_KEYS)
    fl_attention_block(p, &w, block);
  fl_attention_results(p, w.sums, w.width, w.total);
}
