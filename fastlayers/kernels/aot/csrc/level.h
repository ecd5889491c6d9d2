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
#include "recurrent.h"
#include "depthwise.h"
#include "depthwise_block.h"
#include "winograd.h"
#include "binary.h"
#include "pooling.h"
#include "bins.h"
#include "taps.h"
#include "layout.h"
#include "movement.h"
#include "cast.h"
#include "tree.h"
#include "attention.h"
#include "scores.h"
#include "linear_attention.h"
#include "rotary.h"
#include "fft.h"
#include "quantised.h"
#include "probe.h"

#define FL_TEXT_(x) #x
#define FL_TEXT(x) FL_TEXT_(x)
#define FL_JOIN_(a, b) a##b
#define FL_JOIN(a, b) FL_JOIN_(a, b)

static const fl_kernels table = {
    .abi = FL_ABI,
    .name = FL_TEXT(FL_LEVEL),
    .width = VW,
    .mr = FL_MR,
    .block = fl_f32_block,
    .block_at = fl_f32_block_at,
    .direct = fl_f32_direct,
    .attention = fl_f32_attention,
    .attention_tiles = fl_f32_attention_tiles,
    .magnitude = fl_f32_magnitude,
    .masked_scores = fl_f32_masked_scores,
    .additive_scores = fl_f32_additive_scores,
    .rotary = fl_f32_rotary,
    .fft = fl_f32_fft,
    .linear = fl_f32_linear,
    .panels = fl_f32_panels,
    .gather = fl_f32_gather,
    .unary = fl_f32_unary,
    .prelu = fl_f32_prelu,
    .gated = fl_f32_gated,
    .softmax_rows = fl_f32_softmax_rows,
    .softmax_inner = fl_f32_softmax_inner,
    .recurrent_input = fl_f32_recurrent_input,
    .recurrent_step = fl_f32_recurrent_step,
    .depthwise_last = fl_f32_depthwise_last,
    .depthwise_first = fl_f32_depthwise_first,
    .depthwise_block = fl_f32_depthwise_block,
    .winograd_in = fl_f32_winograd_in,
    .winograd_out = fl_f32_winograd_out,
    .reduce_rows = fl_f32_reduce_rows,
    .reduce_columns = fl_f32_reduce_columns,
    .pool = fl_f32_pool,
    .bins = fl_f32_bins,
    .taps = fl_f32_taps,
    .mix = fl_f32_mix,
    .layer_norm = fl_f32_layer_norm,
    .group_norm = fl_f32_group_norm,
    .affine = fl_f32_affine,
    .lrn = fl_f32_lrn,
    .transpose = fl_f32_transpose,
    .binary = fl_f32_binary,
    .compare = fl_f32_compare,
    .where = fl_f32_where,
    .move = fl_bytes_move,
    .within = fl_i64_within,
    .take = fl_bytes_take,
    .cast = fl_any_cast,
    .tree_path = fl_f32_tree_path,
    .tree_spread = fl_f32_tree_spread,
    .tree_best = fl_f32_tree_best,
    .quantised = &fl_quantised_table,
    .probe_fma = fl_f32_probe_fma,
    .probe_read = fl_f32_probe_read,
};

#ifndef FL_NO_MODULE
static int fill(PyObject *module) {
  PyObject *capsule = PyCapsule_New((void *)&table, FL_CAPSULE, NULL);
  if (capsule == NULL)
    return -1;
  int failed = PyModule_AddObjectRef(module, "table", capsule);
  Py_DECREF(capsule);
  return failed;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "_" FL_TEXT(FL_LEVEL), .m_slots = slots};

PyMODINIT_FUNC FL_JOIN(PyInit__, FL_LEVEL)(void) { return PyModuleDef_Init(&definition); }
#endif
