/* Products with weights of 2, 4 or 8 bits that stay packed: what nbits.h works on.
 *
 * Terms (k) are in blocks, columns (n) in panels of 16. Of four neighbouring panels (the last ones may be fewer) a
 * block's groups alternate, the first of each panel, then the second of each, and then come their scales: so a product of one row reads
 * memory line by line. A block of a panel is its weights and then its 16 scales, as float16 where all scales of the matrix are that exactly (ggml's are: a tenth less to
 * read of blocks of 4 bits), else as float32. Weights come in groups of 32 / bits terms: an int32 for each of the 16 columns, whose byte
 * i has term 4 s + i of the group in its bits from s * bits on. So the byte i of every column, shifted, are the weights of four
 * neighbouring terms as the instructions that multiply quads of bytes want them, and a lane is a column everywhere.
 *
 * Rows are floats, or integers with a step for each block: of one byte, or of three, digits to the base 256 from -128 to 127, of which
 * each is a line of bytes, the lowest first. */
#ifndef FL_NBITS_TYPES_H
#define FL_NBITS_TYPES_H
#include <stdint.h>

#define FL_NBITS_SIDE 4 /* panels whose groups alternate */
#define FL_NBITS_FEW 4 /* rows up to which `exact` makes floats of weights in registers alone, */
#define FL_NBITS_PAIR 2 /* where vectors have 512 bits: tiles have one row there, so that each makes them again */

/* How zero points are stored, 16 a block: not at all (each is half of the range), as bytes, as floats. */
enum fl_nbits_zeros { FL_NBITS_HALF, FL_NBITS_BYTES, FL_NBITS_FLOATS };

typedef struct fl_nbits {
  const uint8_t *weights; /* of the first panel that is wanted, as are the zero points */
  const void *zeros;
  int64_t panels;                /* from the first on, in the whole matrix */
  int64_t block, blocks, record; /* terms of a block, their number, bytes of one in a panel */
  int bits, kind, narrow;        /* kind: fl_nbits_zeros; narrow: scales are float16 */
  int64_t m, n, chunk;           /* rows, columns; terms of a chain of sums of `exact`: FL_KC or FL_FINE */
  const float *x;                /* of `exact`: rows of `pitch` floats, which has whole blocks */
  int64_t pitch;
  int digits;         /* of `integer`: bytes of a number, 1 or 3 */
  const int8_t *q;    /* made by `rows`: [m][digits][blocks * block], */
  const float *steps; /* their steps [m][blocks], */
  const float *sums;  /* the sums of each block [m][digits][blocks], */
  const int32_t *starts; /* and these times the zero point where it is the same for all, below 0 */
  const float *bias;     /* of the first column, or NULL; whole panels */
  float *out;
  int64_t ldc;
  const float *codes; /* what each number stands for, or NULL: for itself, less the zero point */
  float factor;       /* of codes that are floats of 8 bits: 0, or what a float32 of a code's sign and its 7 other bits, `shift` further up, is */
  int shift;          /* multiplied by */
} fl_nbits;
#endif
