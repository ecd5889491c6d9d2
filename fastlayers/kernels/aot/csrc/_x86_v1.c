/* The x86_v1 level: see level.h. */
#define FL_LEVEL x86_v1
#include "vec_x86_v1.h"
#include "level.h"
