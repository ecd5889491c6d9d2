/* Moving items of 1, 2, 4 or 8 bytes: two axes with any steps, and rows picked by number.
 *
 * Assumes: x and out do not overlap; no alignment. Every bit of a float survives. Rows that are contiguous on both sides are copied by
 * their length in bytes, short ones without a call; a transposition of 4 bytes is that of layout.h, of other sizes goes in blocks. */

#include "once.h"

/* ---- contiguous rows ---------------------------------------------------------------------------------------------------- */

typedef struct {
  uint64_t a, b;
} fl_bytes16;

/* A row as two pieces of a constant size, the second of which ends where the row ends and may overlap the first */
#define FL_TWO(type)                                                                                                          \
  do {                                                                                                                        \
    type first, last;                                                                                                         \
    memcpy(&first, x, sizeof first), memcpy(&last, x + bytes - sizeof last, sizeof last);                                     \
    memcpy(out, &first, sizeof first), memcpy(out + bytes - sizeof last, &last, sizeof last);                                 \
  } while (0)

/* Length of a row: up to so many bytes, and at least half of that */
enum { FL_ROW_2, FL_ROW_4, FL_ROW_8, FL_ROW_16, FL_ROW_32, FL_ROW_64, FL_ROW_1024, FL_ROW_LONG };

FL_INLINE void fl_copy_row(int length, const char *x, char *out, int64_t bytes) {
  switch (length) {
  case FL_ROW_2: FL_TWO(uint8_t); break;
  case FL_ROW_4: FL_TWO(uint16_t); break;
  case FL_ROW_8: FL_TWO(uint32_t); break;
  case FL_ROW_16: FL_TWO(uint64_t); break;
  case FL_ROW_32: FL_TWO(fl_bytes16); break;
  case FL_ROW_64: {
    fl_bytes16 a, b;
    memcpy(&a, x + 16, 16), memcpy(&b, x + bytes - 32, 16);
    FL_TWO(fl_bytes16);
    memcpy(out + 16, &a, 16), memcpy(out + bytes - 32, &b, 16);
    break;
  }
  case FL_ROW_1024: {
    vf v, last;
    memcpy(&last, x + bytes - sizeof last, sizeof last);
    for (int64_t i = 0; i < bytes - (int64_t)sizeof v; i += sizeof v)
      memcpy(&v, x + i, sizeof v), memcpy(out + i, &v, sizeof v);
    memcpy(out + bytes - sizeof last, &last, sizeof last);
    break;
  }
  default: memcpy(out, x, (size_t)bytes);
  }
}

/* LOOP(class, bytes), both constants where rows are single items. At least one byte. */
#define FL_BY_LENGTH(bytes, LOOP)                                                                                             \
  if (bytes == 1) LOOP(FL_ROW_2, 1)                                                                                           \
  else if (bytes == 2) LOOP(FL_ROW_2, 2)                                                                                      \
  else if (bytes == 4) LOOP(FL_ROW_4, 4)                                                                                      \
  else if (bytes == 8) LOOP(FL_ROW_8, 8)                                                                                      \
  else if (bytes < 4) LOOP(FL_ROW_4, bytes)                                                                                   \
  else if (bytes < 8) LOOP(FL_ROW_8, bytes)                                                                                   \
  else if (bytes <= 16) LOOP(FL_ROW_16, bytes)                                                                                \
  else if (bytes <= 32) LOOP(FL_ROW_32, bytes)                                                                                \
  else if (bytes <= 64) LOOP(FL_ROW_64, bytes)                                                                                \
  else if (bytes <= 1024) LOOP(FL_ROW_1024, bytes)                                                                            \
  else LOOP(FL_ROW_LONG, bytes)

/* Rows of `bytes` bytes; the steps are bytes too. */
static void fl_copy_rows(const char *x, int64_t x_step, char *out, int64_t out_step, int64_t rows, int64_t bytes) {
#define FL_LOOP(length, size)                                                                                                 \
  for (int64_t r = 0; r < rows; r++)                                                                                          \
    fl_copy_row(length, x + r * x_step, out + r * out_step, size);
  FL_BY_LENGTH(bytes, FL_LOOP)
#undef FL_LOOP
}

static int fl_i64_within(const int64_t *indices, int64_t m, int64_t n) {
  const uint64_t count = (uint64_t)n;
  int wrong = 0;
  for (int64_t j = 0; j < m; j++)
    wrong |= (uint64_t)indices[j] + count >= 2 * count; /* without a sign, so that nothing overflows */
  return !wrong;
}

static void fl_bytes_take(const void *from, int64_t n, const int64_t *indices, int64_t m, int64_t bytes, void *to) {
  const char *x = from;
  char *out = to;
  if (bytes == 0)
    return;
#define FL_LOOP(length, size)                                                                                                 \
  for (int64_t j = 0; j < m; j++)                                                                                             \
    fl_copy_row(length, x + fl_row(fl_once(indices + j), n) * (size), out + j * (size), size);
  FL_BY_LENGTH(bytes, FL_LOOP)
#undef FL_LOOP
}

/* ---- two axes with any steps -------------------------------------------------------------------------------------------- */

/* For items of each size: rows of any steps, where steps that the compiler knows become reversals, fills and shuffles; and
 * out[r * out_row + c] = x[r + c * x_col], in blocks of SIDE x SIDE, so that a line is used up while the first-level cache holds it,
 * or, where there are few rows or columns, in rows along the other axis. */
#define FL_MOVE(bits)                                                                                                         \
  typedef uint##bits##_t fl_u##bits __attribute__((aligned(1), may_alias));                                                   \
  FL_INLINE void fl_move_row_##bits(const fl_u##bits *restrict x, int64_t xs, fl_u##bits *restrict out, int64_t os, int64_t n) {   \
    for (int64_t i = 0; i < n; i++)                                                                                           \
      out[i * os] = x[i * xs];                                                                                                \
  }                                                                                                                           \
  static __attribute__((noinline)) void fl_rows_##bits(const fl_u##bits *x, int64_t x_row, int64_t xs, fl_u##bits *out,       \
                                                       int64_t out_row, int64_t os, int64_t rows, int64_t n) {                \
    const int64_t known = os == 1 ? xs : 99;                                                                                  \
    for (int64_t r = 0; r < rows; r++, x += x_row, out += out_row)                                                            \
      switch (known) {                                                                                                        \
      case -1: fl_move_row_##bits(x, -1, out, 1, n); break;                                                                        \
      case 0: fl_move_row_##bits(x, 0, out, 1, n); break;                                                                          \
      case 2: fl_move_row_##bits(x, 2, out, 1, n); break;                                                                          \
      case 3: fl_move_row_##bits(x, 3, out, 1, n); break;                                                                          \
      case 4: fl_move_row_##bits(x, 4, out, 1, n); break;                                                                          \
      default: fl_move_row_##bits(x, xs, out, os, n);                                                                              \
      }                                                                                                                       \
  }                                                                                                                           \
  FL_INLINE FL_UNUSED void fl_transposed_##bits(const fl_u##bits *x, int64_t x_col, fl_u##bits *out, int64_t out_row,         \
                                                int64_t rows, int64_t cols) {                                                 \
    enum { SIDE = 16 };                                                                                                       \
    if (rows < 8) {                                                                                                           \
      fl_rows_##bits(x, 1, x_col, out, out_row, 1, rows, cols);                                                               \
    } else if (cols < 8) {                                                                                                    \
      fl_rows_##bits(x, x_col, 1, out, 1, out_row, cols, rows);                                                               \
    } else {                                                                                                                  \
      for (int64_t r0 = 0; r0 < rows; r0 += SIDE)                                                                             \
        for (int64_t c0 = 0; c0 < cols; c0 += SIDE)                                                                           \
          for (int64_t r = r0; r < r0 + SIDE && r < rows; r++)                                                                \
            for (int64_t c = c0; c < c0 + SIDE && c < cols; c++)                                                              \
              out[r * out_row + c] = x[r + c * x_col];                                                                        \
    }                                                                                                                         \
  }
FL_MOVE(8)
FL_MOVE(16)
FL_MOVE(32)
FL_MOVE(64)

/* The same of 16 x 16 bytes: each round puts every vector's bytes between those of the one eight further on. */
typedef uint8_t fl_lane16 __attribute__((vector_size(16)));
#ifdef __clang__
#define FL_BETWEEN(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define FL_BETWEEN(a, b, ...) __builtin_shuffle(a, b, (fl_lane16){__VA_ARGS__})
#endif
FL_INLINE void fl_turned_bytes(const uint8_t *x, int64_t x_col, uint8_t *out, int64_t out_row) {
  fl_lane16 v[16], w[16];
  FL_UNROLL for (int i = 0; i < 16; i++) memcpy(&v[i], x + i * x_col, 16);
  FL_UNROLL for (int round = 0; round < 4; round++) {
    FL_UNROLL for (int i = 0; i < 8; i++) {
      w[2 * i] = FL_BETWEEN(v[i], v[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      w[2 * i + 1] = FL_BETWEEN(v[i], v[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    FL_UNROLL for (int i = 0; i < 16; i++) v[i] = w[i];
  }
  FL_UNROLL for (int i = 0; i < 16; i++) memcpy(out + i * out_row, &v[i], 16);
}
static void fl_transposed_bytes(const uint8_t *x, int64_t x_col, uint8_t *out, int64_t out_row, int64_t rows, int64_t cols) {
  const int64_t r1 = rows / 16 * 16, c1 = cols / 16 * 16;
  for (int64_t r = 0; r < r1; r += 16)
    for (int64_t c = 0; c < c1; c += 16)
      fl_turned_bytes(x + r + c * x_col, x_col, out + r * out_row + c, out_row);
  if (c1 < cols)
    fl_transposed_8(x + c1 * x_col, x_col, out + c1, out_row, r1, cols - c1);
  if (r1 < rows)
    fl_transposed_8(x + r1, x_col, out + r1 * out_row, out_row, rows - r1, cols);
}

/* Rows are fastest where they are contiguous on both sides. Items that are each repeated a few times (x_col is 0) count as a
 * transposition of rows that all are in the same place. */
static void fl_bytes_move(const fl_move *p) {
  const int64_t rows = p->rows, cols = p->cols, xr = p->x_row, xc = p->x_col, tr = p->out_row, tc = p->out_col;
  const int swap = xr == 1 && tc == 1 && (xc != 0 || cols < 8);
  if (rows <= 0 || cols <= 0)
    return;
  if (xc == 1 && tc == 1) {
    fl_copy_rows(p->x, xr * p->size, p->out, tr * p->size, rows, cols * p->size);
    return;
  }
  switch (swap ? p->size : -p->size) {
  case 1: fl_transposed_bytes(p->x, xc, p->out, tr, rows, cols); break;
  case 2: fl_transposed_16(p->x, xc, p->out, tr, rows, cols); break;
  case 4: fl_f32_transpose(p->x, xc, p->out, tr, cols, rows); break;
  case 8: fl_transposed_64(p->x, xc, p->out, tr, rows, cols); break;
  case -1: fl_rows_8(p->x, xr, xc, p->out, tr, tc, rows, cols); break;
  case -2: fl_rows_16(p->x, xr, xc, p->out, tr, tc, rows, cols); break;
  case -4: fl_rows_32(p->x, xr, xc, p->out, tr, tc, rows, cols); break;
  default: fl_rows_64(p->x, xr, xc, p->out, tr, tc, rows, cols);
  }
}
