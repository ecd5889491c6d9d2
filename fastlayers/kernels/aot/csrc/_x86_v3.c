/* The x86_v3 level: see level.h. */
#define FL_LEVEL x86_v3
#include "vec_x86_v3.h"
#include "level.h"
