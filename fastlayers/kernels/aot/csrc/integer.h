/* Arithmetic, logic and comparisons of integers, and running sums. Plain loops, compiled for the baseline: the arrays are masks, positions
 * and lengths, small next to what they say of others. Sums and products wrap around, as numpy's do. */
#ifndef FL_INTEGER_H
#define FL_INTEGER_H

#include <stdint.h>
#include "../made/codes.h"

/* out[r, i] = f(a[r a_row + i a_col], b[...]) over rows and columns; the steps of columns are 0 or 1. */
typedef struct fl_integers {
  const void *a, *b;
  void *out;
  int64_t rows, cols, a_row, b_row;
  int a_col, b_col;
} fl_integers;

#define FL_I_COLUMNS(T, O, A, B, e)                                                               \
  for (int64_t r = 0; r < p->rows; r++, x += p->a_row, y += p->b_row, z += p->cols)               \
    for (int64_t i = 0; i < p->cols; i++) {                                                       \
      const T s = x[A], t = y[B];                                                                 \
      z[i] = (O)(e);                                                                              \
    }
#define FL_I_EACH(T, O, e)                                                                        \
  do {                                                                                            \
    const T *x = (const T *)p->a, *y = (const T *)p->b;                                           \
    O *z = (O *)p->out;                                                                           \
    if (p->a_col && p->b_col) { FL_I_COLUMNS(T, O, i, i, e) }                                     \
    else if (p->a_col) { FL_I_COLUMNS(T, O, i, 0, e) }                                            \
    else { FL_I_COLUMNS(T, O, 0, i * p->b_col, e) }                                               \
  } while (0); break
#define FL_I_LOGIC(T)                                                                             \
  case FL_I_AND: FL_I_EACH(T, T, s & t);                                                          \
  case FL_I_OR: FL_I_EACH(T, T, s | t);                                                           \
  case FL_I_XOR: FL_I_EACH(T, T, s ^ t);                                                          \
  case FL_I_EQUAL: FL_I_EACH(T, uint8_t, s == t);                                                 \
  case FL_I_NOT_EQUAL: FL_I_EACH(T, uint8_t, s != t);
#define FL_I_NUMBERS(T, U)                                                                        \
  FL_I_LOGIC(T)                                                                                   \
  case FL_I_ADD: FL_I_EACH(T, T, (U)s + (U)t);                                                    \
  case FL_I_SUBTRACT: FL_I_EACH(T, T, (U)s - (U)t);                                               \
  case FL_I_MULTIPLY: FL_I_EACH(T, T, (U)s * (U)t);                                               \
  case FL_I_MINIMUM: FL_I_EACH(T, T, s < t ? s : t);                                              \
  case FL_I_MAXIMUM: FL_I_EACH(T, T, s > t ? s : t);                                              \
  case FL_I_LESS: FL_I_EACH(T, uint8_t, s < t);                                                   \
  case FL_I_LESS_EQUAL: FL_I_EACH(T, uint8_t, s <= t);                                            \
  case FL_I_GREATER: FL_I_EACH(T, uint8_t, s > t);                                                \
  case FL_I_GREATER_EQUAL: FL_I_EACH(T, uint8_t, s >= t);

/* `size`: bytes of an element; those of one byte are booleans. */
static void fl_integer(int op, int size, const fl_integers *p) {
  if (size == 8)
    switch (op) { FL_I_NUMBERS(int64_t, uint64_t) default: break; }
  else if (size == 4)
    switch (op) { FL_I_NUMBERS(int32_t, uint32_t) default: break; }
  else
    switch (op) { FL_I_LOGIC(uint8_t) default: break; }
}

#endif
