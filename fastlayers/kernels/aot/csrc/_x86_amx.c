/* The x86_amx level: a level below it, x86_v4, whose module it loads, with products of bytes, of bfloat16 and with weights of
 * few bits by AMX's tiles. So its own code is what differs. For the tests FL_TILES_EMULATED has the tiles in plain C, over any level (FL_BELOW, with its FL_VECTORS). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define FL_LEVEL x86_amx
#ifndef FL_BELOW
#define FL_BELOW x86_v4
#define FL_VECTORS "vec_x86_v4.h"
#endif
#include FL_VECTORS
#include "kernels.h"

static void (*fl_f32_unary)(int code, float a, float b, const float *x, float *y, int64_t n); /* the level below's */
#include "amx.h"
#include "amx_half.h"
#include "amx_nbits.h"

static fl_kernels table, fine;
static fl_quantized quantized;
static fl_halves halves;

static int over_level_below(void) {
  PyObject *module = PyImport_ImportModule("fastlayers.kernels.aot._" FL_TEXT(FL_BELOW));
  PyObject *capsule = module == NULL ? NULL : PyObject_GetAttrString(module, "table");
  const fl_kernels *below = capsule == NULL ? NULL : PyCapsule_GetPointer(capsule, FL_CAPSULE);
  const int usable = below != NULL && below->abi == FL_ABI;
  if (usable) {
    table = *below, quantized = *below->quantized, halves = *below->halves;
    fl_amx_below = quantized.block, fl_amx_halves_below = below->halves, fl_f32_unary = below->unary;
    quantized.block = fl_amx_block;
    halves.block = fl_amx_half_block, halves.end = fl_amx_half_end;
    halves.native = fl_amx_half_native, halves.round = fl_amx_half_round;
    fl_amx_nbits_below = below->nbits_integer, table.nbits_integer = fl_amx_nbits;
    table.name = FL_TEXT(FL_LEVEL), table.quantized = &quantized, table.halves = &halves;
    fine = *below->fine;
    fine.name = table.name, fine.quantized = &quantized, fine.halves = &halves;
    table.fine = &fine;
  } else if (below != NULL)
    PyErr_SetString(PyExc_ImportError, "fastlayers: level " FL_TEXT(FL_LEVEL) " needs " FL_TEXT(FL_BELOW) " of the same version");
  Py_XDECREF(capsule);
  Py_XDECREF(module); /* sys.modules keeps it */
  return usable ? 0 : -1;
}

#define FL_FILL over_level_below
#include "module.h"
