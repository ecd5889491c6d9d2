/* The functions on quantized values that every level exports, and what they take. Results are integers that do not depend on the
 * level: sums are exact in int32 (and wrap around), floats are rounded step by step and never contracted. */
#ifndef FL_QUANTIZED_TABLE_H
#define FL_QUANTIZED_TABLE_H
#include <stdint.h>

/* What becomes of finished sums: v = sum + offset[j] - zero[j] * rowsum[i], then an int32, or v * scale[j] (+ shift[j]) as a float, or
 * round(v * scale[j]) + y_zero within uint8 or int8. Arrays hold a number per column, padded to whole panels. */
typedef struct {
  const int32_t *offset;
  const int32_t *zero;   /* NULL where all are 0 */
  const int32_t *rowsum; /* of the m rows; NULL if zero is */
  const float *scale, *shift; /* shift may be NULL */
  int kind;              /* FL_INT32, FL_FLOAT32, FL_UINT8, FL_INT8 */
  int32_t y_zero;
} fl_qepilogue;

/* A sum's terms come in quads of 4 bytes; a run of them is next to each other in a row, `offset` bytes after its pointer. */
typedef struct {
  int64_t offset, quads;
} fl_qrun;

/* out[i, j] = epilogue(sum_k row_i[k] b[k, j]) for m rows of uint8 and n columns of int8. b holds panels of 16 columns, each
 * [quads][16][4] with stride `panel` bytes, the columns past n zero; up to 3 bytes past a run's own end may be read (against weights of 0). */
typedef struct {
  const uint8_t *const *rows;
  int64_t m, n;
  const fl_qrun *runs;
  int64_t nruns;
  const int8_t *b;
  int64_t panel;
  void *out;
  int64_t ldc; /* elements between rows of out */
  fl_qepilogue e;
} fl_qblock;

/* Pixels of a row of a depthwise convolution, channels-last: the sums of w[t][i] taps[t][o * step + i] for o < cols, i < c.
 * w is [pairs of taps][whole panels of channels][2]. `bytes`, NULL if the weights are none, has them once more, for levels that multiply
 * quads of bytes: [quads of taps][blocks of 64 channels][4][4][4][4], the channels of a block as [b][a][c] for a, b, c of [a][b][c], the
 * taps of a quad last. There are pointers for whole quads of taps, those past the last one being any. */
typedef struct {
  const uint8_t *const *taps;
  int64_t pairs, step, c, cols;
  const int16_t *w;
  const int8_t *bytes;
  void *out; /* [cols][ldc] */
  int64_t ldc;
  fl_qepilogue e;
} fl_qdepthwise;

/* a a_scale + (b b_scale + scale), each sum rounded once, where zeros are 0 (see kernels/quantized_add.py); or the product (a - a_zero)
 * (b - b_zero) times `scale`; round, + zero. */
typedef struct {
  int multiply, is_signed;
  int32_t a_zero, b_zero, zero;
  float a_scale, b_scale, scale;
} fl_qbinary;

typedef struct {
  void (*block)(const fl_qblock *p);
  void (*depthwise)(const fl_qdepthwise *p);
  /* the sums of rows' bytes, runs as above but `lengths` bytes each */
  void (*rowsums)(const uint8_t *const *rows, int64_t m, const fl_qrun *runs, const int64_t *lengths, int64_t nruns, int32_t *out);
  /* k rows of n bytes, the next one `ld` bytes on, as panels for `block`, uint8 less 128; and the sums of their columns, whole panels */
  void (*panels)(const uint8_t *b, int64_t ld, int64_t k, int64_t n, int is_signed, int8_t *to, int32_t *sums);
  /* y = x ^ 0x80: int8 as uint8 and back */
  void (*flip)(const uint8_t *x, uint8_t *y, int64_t n);
  /* round(x / scale) + zero; one scale and zero for all, or one for each number */
  void (*quantize)(const float *x, const float *scale, const int32_t *zero, int each, int kind, void *y, int64_t n);
  /* (x - zero) * scale, x of `kind` */
  void (*dequantize)(const void *x, int kind, const float *scale, const int32_t *zero, int each, float *y, int64_t n);
  /* sums as quantized values: round(x * by) + zero, cut off; one factor for all or one for each */
  void (*requantize)(const int32_t *x, const float *by, int each, int32_t zero, int kind, void *y, int64_t n);
  /* the least and the largest of n floats and of what is there; NaN is passed over */
  void (*range)(const float *x, int64_t n, float *low, float *high);
  /* to = bias - zero sums + times zeros, modulo 2^32 (zeros may be NULL); scale = factor step, unless factor is NULL; n is whole panels */
  void (*correct)(const int32_t *bias, const int32_t *sums, const int32_t *zeros, int32_t zero, int32_t times, int32_t *to,
                  const float *factor, float step, float *scale, int64_t n);
  void (*binary)(const fl_qbinary *p, const uint8_t *a, const uint8_t *b, int each, uint8_t *y, int64_t n); /* not each: one b */
  /* y[i] += x[i], and y[i] = the larger of both, of bytes */
  void (*add)(const uint8_t *x, int is_signed, int32_t *y, int64_t n);
  void (*larger)(const uint8_t *x, int is_signed, uint8_t *y, int64_t n);
  /* y[i] = table[x[i]], of 256 bytes; y may be x */
  void (*lookup)(const uint8_t *x, const uint8_t *table, uint8_t *y, int64_t n);
} fl_quantized;
#endif
