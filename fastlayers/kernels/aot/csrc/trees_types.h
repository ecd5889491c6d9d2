/* Both forms of trees.h: float and double. Nothing in them is gained from wider vectors, so they are compiled once, not once a level. */
#ifndef FL_TREES_TYPES_H
#define FL_TREES_TYPES_H
#include <stddef.h>
#include <stdint.h>

#define FL_TREE_LANES 8
#define FL_TREE_ROWS 256 /* of a task at most */
enum { FL_TREE_AVERAGE, FL_TREE_SUM, FL_TREE_MIN, FL_TREE_MAX };
enum { FL_TREE_SINGLE, FL_TREE_DENSE, FL_TREE_SPARSE };

/* Trees and how their leaves are joined; see trees.h and kernels/tree_layout.py. `nodes` and `missing` point to node 0, before which the
 * leaves are. `steps`: nodes on the longest ways through all trees together. */
typedef struct {
  const void *nodes, *weight;
  const int32_t *missing, *roots, *depth, *target;
  const int64_t *start;
  int64_t trees, targets, columns, steps;
  int kind, op;
} fl_trees;

#define FL_TREE_X float
#define FL_TREE_(name) fl_f32_trees_##name
#include "trees.h"
#undef FL_TREE_X
#undef FL_TREE_
#define FL_TREE_X double
#define FL_TREE_(name) fl_f64_trees_##name
#include "trees.h"
#undef FL_TREE_X
#undef FL_TREE_
#endif
