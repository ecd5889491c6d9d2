/* The neon level: see level.h. */
#define FL_LEVEL neon
#include "vec_neon.h"
#include "level.h"
