/* What the kernel `fft` works on; ../../fft_tables.py explains the tables and makes them. */
#ifndef FL_FFT_TYPES_H
#define FL_FFT_TYPES_H
#include <stdint.h>

#define FL_FFT_PASSES 32 /* of one of the two parts */
#define FL_FFT_ROWS 16   /* of a task */

enum fl_fft_op { FL_FFT, FL_IFFT, FL_RFFT, FL_IRFFT, FL_FFT_REAL, FL_IFFT_REAL };

/* One of the two parts of a transform: n points, by passes */
typedef struct fl_fft_part {
  int64_t n;
  int passes;
  int radix[FL_FFT_PASSES];
  const float *roots[FL_FFT_PASSES];
} fl_fft_part;

typedef struct fl_fft {
  const float *x, *window;
  float *out;
  int64_t length, frames, stride; /* floats of a row of x, frames of each, floats from one to the next */
  int64_t size, n;                /* points, and those of the complex transform */
  int64_t reads, writes;          /* floats of a frame, and of a result */
  int op, pairs;                  /* pairs: reals are taken as complex numbers, two at a time */
  float scale;
  fl_fft_part first, second;
  const float *middle, *chirp, *filter, *fold;
  int64_t plane;   /* floats of one part, real or imaginary, of a row of points */
  int64_t room;    /* floats of a buffer of the scratch, of which there are three */
  int64_t lanes;   /* the largest n of which several rows are taken at a time, each in a lane */
} fl_fft;
#endif
