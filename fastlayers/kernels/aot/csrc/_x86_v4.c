/* The x86_v4 level: see level.h. */
#define FL_LEVEL x86_v4
#include "vec_x86_v4.h"
#include "level.h"
