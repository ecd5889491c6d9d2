/* The table of compute kernels that every instruction-set level exports, and the structures that they take.
 *
 * One level = one small extension (_x86_v3.c, ...) = one `const fl_kernels` passed to the Cython driver in a capsule.
 * Contract of every function here: float32, contiguous unless a stride is given, any size from 0 up, never allocates, never
 * raises, never touches Python, reads nothing outside its operands, propagates NaN and infinity. See ../../README.md.
 */
#ifndef FL_KERNELS_H
#define FL_KERNELS_H
#include <stdint.h>
#include "../made/codes.h" /* from kernels/table.py: see codegen/ */
#include "quantized_table.h"
#include "fft_types.h"
#include "nbits_types.h"

#define FL_CAPSULE "fastlayers.kernels" /* name of the capsule that holds a `const fl_kernels *` */
#define FL_TEXT_(x) #x
#define FL_TEXT(x) FL_TEXT_(x)

#define FL_PANEL 16 /* columns of a packed panel, the same on every level: packed weights do not depend on the level */
#define FL_KC 256   /* a sum over K is made of blocks of FL_KC terms; the blocks' sums are added in order */
#define FL_FINE 64  /* and in strict precision of blocks of so many terms, of which FL_KC is a multiple */

/* ---- packed matrix product ------------------------------------------------------------------------------------------ */

/* Part of the K axis that is contiguously in a row: `length` floats that start `offset` floats after the row's pointer. Below 0:
 * -length terms are left out, which packed panels hold all the same. */
typedef struct {
  int64_t offset, length;
} fl_run;

/* What happens to a finished sum before it leaves the tile: + bias, + residual, then the activation. */
typedef struct {
  const float *bias;     /* NULL, or one value a column (padded to whole panels), or one per row if bias_by_row */
  int bias_by_row;
  const float *residual; /* NULL, or laid out like c with stride ldr */
  int64_t ldr;
  int code;              /* fl_unary_code */
  float a, b;
} fl_epilogue;

/* One block of K (at most FL_KC terms) for m rows and n columns:  c[i, j] (+)= sum_k row_i[k] b[k, j].
 * b holds ceil(n / 16) panels, each [klen][16], the columns past n zero. */
typedef struct {
  const float *const *rows; /* m pointers, each to the start of its row */
  int64_t m, n;
  const fl_run *runs; /* nruns runs whose lengths, all counted as positive, add up to klen */
  int64_t nruns, klen;
  const float *b;
  const float *ahead; /* the panels that the next call will read, to draw them in meanwhile; or NULL */
  float *c;
  int64_t ldc;
  int accumulate;             /* 0: c = sum; 1: c = c + sum */
  const fl_epilogue *epilogue; /* NULL unless this is the last block of K */
} fl_block;

/* The product with both operands where they are:  c[i, j] (+)= sum_t a[i * ai + t * at] b[t * bt + j]  for t < k, at most FL_KC.
 * n is a multiple of FL_PANEL. */
typedef struct {
  const float *a;
  int64_t ai, at;
  const float *b;
  int64_t bt;
  float *c;
  int64_t ldc, m, n, k;
  const float *factor; /* NULL, or c's row i is multiplied by factor[i] before the sum is added, whatever `accumulate` is */
  int accumulate;      /* 0: c = sum; 1: c = c + sum */
} fl_direct;

/* Data as panels of the product: b[panel][t][lane] = base[taps[t] + pixels[16 panel + lane]] for t < klen and n pixels, the lanes
 * past n zero. If `slack`, FL_PANEL floats past every element that is named may be read too, and FL_PANEL past b's end be written. */
typedef struct {
  const float *base;
  const int64_t *taps, *pixels;
  int64_t klen, n;
  int slack;
  float *b;
} fl_panels;

/* ---- weights of 16 bits ------------------------------------------------------------------------------------------------- */

/* How weights are stored; the values are those of `table.HALF_KINDS`. */
enum fl_half_kind {
  FL_WHOLE, /* as float32 */
  FL_HALF,  /* float16: panels [terms][16] */
  FL_BRAIN, /* bfloat16: panels [pairs of terms][16][2], a last term without a partner has zeros */
  FL_BRAIN_EXACT /* the same, of which no level is native: x stays as it is */
};

/* c = epilogue(x b) for m rows of k terms and n columns from panel `first` on of `panels`. b has blocks of K, in each one panel after
 * the other, as float32's; bfloat16 rounds the length of a block up to pairs. */
typedef struct {
  int kind;
  const float *const *rows;
  const uint16_t *const *pairs; /* or NULL; instead of `rows` for a level that is `native`: rows in bfloat16 */
  const fl_run *runs;           /* where block i of K is in a row: in runs starts[i] .. starts[i + 1] - 1, without gaps; */
  const int64_t *starts;        /* NULL: all of a row is in its place. Never NULL where there are `pairs` */
  int64_t m, k;
  const uint16_t *b;
  int64_t panels, first, n;
  float *c;
  int64_t ldc;
  const fl_epilogue *epilogue; /* or NULL; its bias and residual begin at column `first` * 16 */
  int *tiles; /* what a thread's calls in a row keep in between, for `end`; 0 before the first one */
} fl_half_block;

typedef struct fl_halves {
  void (*block)(const fl_half_block *p);
  void (*end)(int *tiles); /* after the last one of a thread's calls in a row */
  int (*native)(int kind); /* whether the processor multiplies what is stored so: x is rounded then, and may come as `pairs`;
                              * 2: fl_dw_block's mixed groups too */
  void (*round)(const float *x, int64_t n, uint16_t *to); /* to bfloat16, subnormals to 0; of a level that is native */
  /* one panel of a block of K from floats [klen][16], rounded to nearest, ties to even */
  void (*pack)(int kind, const float *panel, int64_t klen, uint16_t *to);
} fl_halves;

/* ---- recurrent -------------------------------------------------------------------------------------------------------- */

/* An elementwise function and its parameters, as `unary` takes them. */
typedef struct {
  int code;
  float a, b;
} fl_function;

enum fl_cell_kind {
  FL_LSTM,      /* gates i f g o */
  FL_GRU,       /* gates r z n; r multiplies the product R_n h + b_n */
  FL_GRU_EARLY, /* gates r z n; r multiplies h before the product */
  FL_RNN        /* one gate */
};

/* What one direction of a recurrent layer does with its state h (and c). Units come in blocks of 16, padded to hp = 16 blocks.
 * R is packed as the product's weights are, with the columns in the order [hp/16][gates][16]. */
typedef struct {
  int kind; /* fl_cell_kind */
  int gates;
  int standard; /* sigmoid and tanh, no clip, no peephole, not coupled */
  int coupled;  /* LSTM: f = 1 - i */
  int64_t hidden, hp;
  int64_t terms, tp; /* of h, which R multiplies; hidden and hp but for projections */
  const float *r;        /* FL_GRU_EARLY: the columns of r and z alone, [hp/16][r z][16] */
  const float *late;     /* FL_GRU_EARLY: those of n, [hp/16][16] */
  const float *bias;     /* FL_GRU: b_n of the product of h, [hp] */
  const float *peephole; /* LSTM: NULL, or [i f o][hp] */
  const float *project;  /* LSTM: NULL, or the weights that make of `hidden` values the `terms` of h, as the product's are */
  fl_function gate, cell, out; /* of i f o, r z; of g, n and of an RNN; of c where it becomes h */
  float clip; /* sums of gates are clipped to -clip .. clip; 0: they are not */
  int half;   /* fl_half_kind: how r, late and project, and W, are stored */
} fl_cell;

/* One step of `rows` sequences. xg holds W x + b: block of units u and row j begin at xg + u * xg_block + j * xg_row and hold
 * [gates][16]. Reads h, writes h_next (which must be another buffer), [rows][tp], and updates c, [rows][hp]. */
typedef struct {
  const fl_cell *cell;
  int64_t rows;
  const float *xg;
  int64_t xg_block, xg_row;
  const float *h;
  float *h_next, *c;
  float *spare;  /* FL_GRU_EARLY: [z, r h][rows][hp]; with projections [rows][hp]: what is projected */
  const fl_halves *halves; /* of the level, for cells with weights of 16 bits */
  int *tiles;              /* for these, as fl_half_block's */
  int backwards; /* walk the units from the last to the first, so that what the cache still holds of R is used first */
  int64_t first, last; /* blocks of units; all of them for FL_GRU_EARLY and with projections, which need all before they go on */
} fl_recurrent_step;

/* The other half of the sums, for any number of rows at once: xg = W x + b, laid out as above. `bias` and W's columns are in the
 * order of R's. */
typedef struct {
  const float *const *rows; /* m pointers, each to a row of x */
  int64_t m, inputs, gates, blocks;
  int64_t first, last; /* which of the blocks are wanted */
  const float *w, *bias;
  float *xg;           /* of block 0 */
  int64_t xg_block, xg_row;
  int half; /* fl_half_kind of w */
  const fl_halves *halves; /* of the level, unless w is float32 */
} fl_recurrent_input;

/* ---- attention -------------------------------------------------------------------------------------------------------- */

#define FL_QUERIES 64   /* queries of one head that are worked on together */
#define FL_KEYS 64      /* keys of a block: the sums over keys are made of blocks, added in order */
#define FL_TILE_ZERO -1 /* what is known of 16 x 16 values of a mask: all are zero, */
#define FL_TILE_ANY -2  /* nothing; any other number: all are lower by so much than the largest number of any of their rows */

/* Up to FL_QUERIES queries of one head:  out = softmax(scale q k^T + mask) v. */
typedef struct {
  const float *q;     /* [rows][d], stride qi */
  int64_t qi;
  const float *k;     /* key j's number t is k[j * kj + t * kt] */
  int64_t kj, kt;
  const float *v;     /* [keys][e], stride vj */
  int64_t vj;
  const float *mask;  /* NULL, or mask[i * mi + j * mj] is added to the score of query i and key j; mj is 0 or 1 */
  int64_t mi, mj;
  const float *tiles; /* NULL, or what attention_tiles found: of strip u (queries 16 u ..) at tiles[u * tiles_strip + j / 16] */
  int64_t tiles_strip;
  float *out;         /* [rows][e], stride oi */
  int64_t oi;
  int64_t rows, keys, d, e;
  int64_t last;       /* query i sees the keys up to last + i */
  float scale;
  float bound;        /* the largest |k|, or infinity or NaN where k or v are not finite: with these, no key is left out unread */
  float empty;        /* the result of a query that sees no key */
  int zeros;          /* instead, and where a weight is NaN, all weights are 0 */
  float *scratch;     /* FL_ATTENTION_SCRATCH(d, e) floats, aligned to 64 bytes */
} fl_attention;
#define FL_ATTENTION_SCRATCH(d, e) (((d) + FL_KEYS + 2 * ((e) + FL_PANEL)) * FL_QUERIES)

/* ---- depthwise convolution ---------------------------------------------------------------------------------------------- */

/* Pixels of one output row of a depthwise convolution, channels-last:
 * out[o, i] = act(sum_t w[t, i] taps[t][o * step + i] + bias[i] + residual[o, i])  for o < cols, i < c;  c >= the level's width. */
typedef struct {
  const float *const *taps; /* ntaps pointers, to what the first pixel's taps read */
  int64_t ntaps;
  int64_t kw;               /* taps come in rows of kw neighbours with stride c; 1 if they do not */
  int64_t step;
  const float *w, *bias;    /* [ntaps][c], [c] */
  const float *residual;    /* NULL, or laid out like out */
  float *out;               /* [cols][c] */
  int64_t c, cols;
  int code;
  float a, b;
} fl_dw_last;

/* Part of a row that is brought into scratch: to[i] = from[i * step] for i < n, both given as offsets. */
typedef struct {
  int64_t from, to, n;
} fl_dw_copy;

/* Rows of one channel of a depthwise convolution, channels-first, from padded rows whose columns are sorted by their phase of the
 * stride, so that neighbouring outputs read neighbouring floats:
 * out[y * ldo + j] = act(sum_t w[t] x[y * step + j + taps[t]] + bias + residual[y * ldo + j])  for y < rows, j < cols.
 * The padded rows are made first, by ncopies copies from `source`; what they leave alone is ready (zeros), or all of it is.
 * If cols is less than the level's width: ldo = cols, and that many floats past every element of x that is named may be read too. */
typedef struct {
  float *x;
  const float *source;
  const fl_dw_copy *copies;
  int64_t ncopies, source_step;
  const int64_t *taps;
  int64_t kh, kw;        /* kh * kw taps; kh counts the rows of all planes */
  int64_t row;           /* taps[r * kw + u] = taps[u] + r * row; 0 if they are not that regular */
  int64_t step;
  const float *w;
  float bias;
  const float *residual; /* NULL, or laid out like out */
  float *out;
  int64_t ldo, rows, cols;
  int code;
  float a, b;
  /* Or, where `plain` is 1 or 2, the stride: a plane [h_in][w_in] at `source`, of which the first output's taps begin `top` rows and
   * `left` places early; a kernel kh = kw of 3, or of 5 with stride 2; at least 4 rows; w_in zeros. See depthwise_plain.h. */
  int plain;
  int64_t h_in, w_in, top, left;
  const float *zeros;
} fl_dw_first;

/* Sixteen channels of a depthwise convolution: out[y, o, i] = act(sum over r, u of weight[r, u, i] band[y * down + r * row_step +
 * o * step * 16 + u * tap_step + i] + bias[i] + residual[y, o, i]), with an activation of at most FL_CLIP. The band is made first:
 * band_rows rows of band_row floats, sixteen a pixel, of which h rows from `top` on hold w pixels of x from `left` on, the rest 0.
 * With `mix`, 2, 4 or 8: of groups of so many channels, weight[r, u, t, i] times channel t of i's group; down and row_step are
 * multiples of band_row, in which there is room for what 7 outputs more would read. 16 more than these: weights are in bfloat16, [kh][kw]
 * [pairs of a group's channels][16][2]; for levels whose `halves` are native by 2. With `many` above 1 a pixel of x has `held` channels,
 * each for so many results: lane i of the band is channel (skip + i) / many. */
typedef struct {
  const float *x;              /* rows of pixels with strides x_row and x_pixel, each of `lanes` channels, at most 16 */
  int64_t x_row, x_pixel, lanes;
  int64_t many, skip, held;
  float *band;                 /* scratch */
  int64_t band_rows, band_row, top, h, left, w;
  int64_t kh, kw, row_step, tap_step, down, step; /* kh * kw * max(mix, 1) at most FL_KC */
  int64_t mix;
  const float *weight, *bias;  /* [kh][kw][16] or [kh][kw][mix][16], [16] */
  const float *residual;       /* NULL, or rows of pixels as out's */
  int64_t residual_row, residual_pixel;
  float *out;
  int64_t out_row, out_pixel, rows, cols;
  int code;
  float a, b;
} fl_dw_block;

/* ---- broadcast operands ---------------------------------------------------------------------------------------------------- */

/* Rows of operands, of which each may repeat itself: operand[r * row + c * col], col 1 or 0; out is [rows][cols]. */
typedef struct {
  const uint8_t *condition; /* `where` alone: 0 or another number */
  const float *a, *b;
  void *out;
  int64_t rows, cols;
  int64_t condition_row, a_row, b_row;
  int condition_col, a_col, b_col;
} fl_broadcast;

/* ---- movement --------------------------------------------------------------------------------------------------------------- */

/* Items with two axes: out[r * out_row + c * out_col] = x[r * x_row + c * x_col] for r < rows, c < cols. Steps count items. */
typedef struct {
  const void *x;
  void *out;
  int size; /* bytes of an item: 1, 2, 4 or 8 */
  int64_t rows, cols, x_row, x_col, out_row, out_col;
} fl_move;
/* ---- Winograd convolution ------------------------------------------------------------------------------------------------- */

/* A row of input tiles, each of side[0] x side[1] pixels of FL_PANEL channels and m[1] pixels after the one before, transformed:
 * v[t * tile + q * point + i] for tiles t, positions q < side[0] * side[1] and channels i. A side of 1 is an axis that is left as it is. */
typedef struct {
  int side[2], m[2];        /* see winograd.h; a side's outputs (with a stride of 2, their inputs), m, are 1 where it is 1 */
  const float *const *rows; /* side[0] pointers to rows of pixels [x][FL_PANEL] */
  int64_t tiles;
  float *v;
  int64_t point, tile; /* floats between positions, and between tiles */
} fl_wino_in;

/* A row of output tiles, each of m[0] x m[1] pixels, out of sums that are like v above, with all whole vectors that c begins:
 * out[y * row + x * pixel + i] = act(tile's output + bias[i] + residual[the same place])
 * for y < rows <= m[0], x < cols <= tiles * m[1], i < c. */
typedef struct {
  int side[2], m[2];
  const float *s;
  int64_t point, tile;
  int64_t tiles, rows, cols, c;
  const float *bias;     /* NULL, or padded to whole panels */
  const float *residual; /* NULL, or laid out like out */
  float *out;
  int64_t row, pixel;
  int code;
  float a, b;
} fl_wino_out;
/* ---- reductions, pooling, normalization ---------------------------------------------------------------------------------- */

/* The input rows under one row of outputs: nz planes of ny rows, the first `from` floats after the image; and the factors that make
 * the sums of this row averages. */
typedef struct {
  int64_t from, nz, ny;
  int64_t at; /* of the window's positions along these axes, the number of the first one: kh in a plane */
  const float *scale;
} fl_pool_row;

/* Rows of outputs of max or average pooling, channels-first (out_pixel = 1) or c channels of every pixel. A row is made in two steps:
 *   line[left + r * run + i] = fold of x[from + r * run_step + i + z * step_z + y * step_y] over z < nz, y < ny;  r < runs, i < run
 *   out[j * out_pixel + i] = fold of line[j * step + t * tap + i] over t < kw;                                  j < cols, i < c
 * Both ends of a line already hold what counts for nothing, -infinity or 0. There are nrows lines and an extra one, of `pitch` floats
 * each, whose last 32 no window reaches. An average is multiplied by scale[first + j]. */
typedef struct {
  const float *x;
  const fl_pool_row *rows;
  int64_t nrows, step_z, step_y, runs, run, run_step;
  float *line, *spare;
  int64_t pitch, left, kh, kw, tap, step;
  float *out;
  int64_t ldo, out_pixel, first, cols, c;
  int average;
  int gathered; /* out_pixel = tap = 1: every window is reduced alone, for those that are long or few */
  /* NULL; or where out_pixel = step = 1 and pitch = ldo = cols, so that rows are one row, for every tap `period` masks, a multiple of 16: 0
   * for the columns of the first rows where the tap is outside, else -1. Then there is one long line with 32 extra floats. */
  const int32_t *masks;
  int64_t period;
} fl_pool;

/* Boxes of an image: bins along each axis are pairs (first position, one after the last) from the pointer that is given with it. */
typedef struct {
  const int64_t *z, *y, *x;
  int64_t ny, nx;      /* how many there are along these axes */
  int64_t plane, row;  /* floats between planes and rows of the image */
  int64_t cols, c;     /* pixels of a row that bins may read, and values per pixel, which are next to each other */
  int average;         /* the mean, else the largest; 0 of an empty box */
  float *line;         /* scratch: cols * c floats */
} fl_bins;

/* Weighted taps along an axis: out[o] = sum over t < taps of weight[t][o] x[index[t][o]]; weights of 0 are left out. */
typedef struct {
  int64_t n, taps, pitch;  /* outputs, taps of one, values between taps in the tables: n rounded up to 16 */
  const int32_t *index;
  const float *weight;     /* NULL: one tap of weight 1 */
  const int32_t *base;     /* NULL, or for each vector of outputs what is added to the index; then all taps of these outputs are in the
                            * 2 vectors after it, which are in the row (or the row is shorter than them, and all of base is 0) */
  int64_t size;            /* inputs of a row */
} fl_taps;

/* y = f(x * scale[c] + shift[c]) on [any number][channels][inner]; y may be x. */
typedef struct {
  const float *x, *scale, *shift;
  float *y;
  int64_t channels, inner;
  int code;
  float a, b;
} fl_affine;

/* Local response over [channels][inner]: windows reach from `before` channels earlier to `after` channels later, both < channels. */
typedef struct {
  int64_t channels, inner, before, after;
  float alpha, beta, bias; /* alpha divided by the window's size */
} fl_lrn;

/* ---- the table ------------------------------------------------------------------------------------------------------------ */

/* How likely a child of a tree is; see tree.h. */
typedef struct {
  double log;
  int64_t child;
} fl_tree_place;

/* Linear attention: `cols` (at most FL_LINEAR_STRIP) columns of the state of one head of keys, through all steps. Arrays begin at the head, those
 * of e columns at the first of these; a step is `.._step` floats after the one before. `heads` heads of queries read the state. */
#define FL_LINEAR_STRIP 64
typedef struct fl_linear {
  const float *q, *k, *v;
  const float *gate; /* NULL, or `gates` factors of the state's rows: one for all, or d */
  const float *beta; /* NULL: states grow by k vᵀ; else by k (beta (v - stateᵀ k))ᵀ, beta a number per step */
  float *state, *out;
  int64_t steps, d, e, cols, heads, gates;
  int64_t q_step, k_step, v_step, gate_step, beta_step, out_step;
  float scale;
} fl_linear;

typedef struct fl_kernels fl_kernels;
typedef struct fl_kernels {
  int abi;
  const char *name; /* "x86_v3" */
  int width;        /* floats in a vector */
  int mr;           /* rows of the tallest tile */

#define FL_KERNEL(of, name, result, arguments) result(*name) arguments;
#include "kernels.def"
#undef FL_KERNEL

  const fl_quantized *quantized; /* quantized.h */
  const fl_halves *halves;       /* half.h */
  const fl_kernels *fine;        /* this level with products whose sums are in blocks of FL_FINE; NULL in that one */
} fl_kernels;

#endif
