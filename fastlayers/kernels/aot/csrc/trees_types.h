/* Both forms of trees.h: float and double. Walks gain nothing from wider vectors, so they are compiled once, not once a level; tops of trees
 * do, see tree_tops.h. */
#ifndef FL_TREES_TYPES_H
#define FL_TREES_TYPES_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "tree_tops.h"

#define FL_TREE_LANES 8
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
  /* of floats, where they are used, or NULL; else see fl_tree_top, of every tree, and the children at the ends of its ways */
  fl_tree_tops_fn tops;
  const uint8_t *top_feature;
  const float *top_split;
  const uint64_t *top_missing;
  const int32_t *exits;
  int64_t storeys, used;
} fl_trees;

#define FL_TREE_X float
#define FL_TREE_(name) fl_f32_trees_##name
#define FL_TREE_TOPS(p) ((p)->tops)
#include "trees.h"
#undef FL_TREE_X
#undef FL_TREE_
#undef FL_TREE_TOPS
#define FL_TREE_X double
#define FL_TREE_(name) fl_f64_trees_##name
#define FL_TREE_TOPS(p) NULL
#include "trees.h"
#undef FL_TREE_X
#undef FL_TREE_
#undef FL_TREE_TOPS
#endif
