/* Body of a level: the kernels, the table of them, and the extension module that hands the table over in a capsule.
 * Included by _<level>.c after FL_LEVEL is defined and vec_<level>.h is included. With FL_NO_MODULE defined there is the table alone,
 * for checks that run without Python (tests/neon.c). */
#ifndef FL_NO_MODULE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#endif
#include "kernels.h"

#include "part.h"
#include "vmath.h"
#include "double.h"
#include "unary.h"
#include "softmax.h"
#include "reduce.h"
#include "norm.h"
#include "gemm.h"
#include "direct.h"
#include "panels.h"
#include "cast.h"
#include "half.h"
#include "recurrent.h"
#include "depthwise.h"
#include "taps.h"
#include "layout.h"
#include "movement.h"
#include "attention.h"
#if VW == 4 && defined(__x86_64__) && !defined(__clang__) /* SSE2's, of processors that few have, as short as can be: a wheel has little room */
#pragma GCC push_options
#pragma GCC optimize("Os")
#endif
#include "depthwise_block.h"
#include "winograd.h"
#include "binary.h"
#include "pooling.h"
#include "bins.h"
#include "tree.h"
#include "scores.h"
#include "linear_attention.h"
#include "rotary.h"
#include "fft.h"
#include "quantized.h"
#include "nbits.h"
#if VW == 4 && defined(__x86_64__) && !defined(__clang__)
#pragma GCC pop_options
#endif
#include "probe.h"

#define FL_TABLE .abi = FL_ABI, .name = FL_TEXT(FL_LEVEL), .width = VW, .mr = FL_MR, .quantized = &fl_quantized_table, .halves = &fl_halves_table
#define FL_KERNEL(of, name, result, arguments) .name = fl_##of##_##name,
#define fl_f32_block fl_f32_fine_block
#define fl_f32_block_at fl_f32_fine_block_at
#define fl_f32_direct fl_f32_fine_direct
static const fl_kernels fine = {
    FL_TABLE,
#include "kernels.def"
};
#undef fl_f32_block
#undef fl_f32_block_at
#undef fl_f32_direct
static const fl_kernels table = {
    FL_TABLE,
    .fine = &fine,
#include "kernels.def"
};
#undef FL_KERNEL

#ifndef FL_NO_MODULE
#include "module.h"
#endif
