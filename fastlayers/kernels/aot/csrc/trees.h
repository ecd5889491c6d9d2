/* Ensembles of decision trees: which leaf a row of x reaches in each tree, and what the leaves add up to.
 *
 * Included twice by trees_types.h, for float and for double x and splits: FL_TREE_X is the type, FL_TREE_(name) makes the names.
 *
 * A node is {split, feature, child[2]}: x[feature] <= split leads to child[0], else to child[1]. Nodes have the values 0 and above;
 * leaves are before them in the same array, leaf k at -1 - k, and lead to themselves. So a walk has no branch: eight of them go on
 * next to each other for as many steps as the deepest tree has, and end early once all eight values are negative. Eight rows of one tree,
 * or, of rows that are fewer than that, eight trees of one row. Rows of floats may begin below the tops of trees: tree_tops.h.
 *
 * NaN: rows that have one are walked by way of `missing`, the third child of each node. Sums are of doubles, tree by tree in their
 * order for every row, so results depend on nothing but the row.
 */
typedef struct {
  FL_TREE_X split;
  int32_t feature;
  int32_t child[2];
} FL_TREE_(node);

/* One step of eight walks. `nan` is a constant where this is inlined. */
static inline __attribute__((always_inline)) void FL_TREE_(step)(const FL_TREE_(node) *nodes, const int32_t *missing,
                                                                 const FL_TREE_X *const *x, int64_t *at, int nan) {
#pragma GCC unroll 8
  for (int k = 0; k < FL_TREE_LANES; k++) {
    const FL_TREE_(node) *node = nodes + at[k];
    const FL_TREE_X value = x[k][node->feature];
    int64_t next = node->child[!(value <= node->split)];
    if (nan && value != value)
      next = missing[at[k]];
    at[k] = next;
  }
}

static inline __attribute__((always_inline)) void FL_TREE_(walk)(const FL_TREE_(node) *nodes, const int32_t *missing,
                                                                 const FL_TREE_X *const *x, int64_t *at, int64_t depth, int nan) {
  int64_t all = at[0];
  for (int k = 1; k < FL_TREE_LANES; k++)
    all &= at[k];
  for (int64_t d = 0; d < depth && all >= 0; d += 2) {
    FL_TREE_(step)(nodes, missing, x, at, nan);
    FL_TREE_(step)(nodes, missing, x, at, nan);
    all = at[0];
#pragma GCC unroll 8
    for (int k = 1; k < FL_TREE_LANES; k++)
      all &= at[k];
  }
}

static __attribute__((noinline)) void FL_TREE_(extreme)(const fl_trees *p, int64_t leaf, double *sums, char *seen) {
  const FL_TREE_X *weight = (const FL_TREE_X *)p->weight;
  for (int64_t i = p->start[leaf]; i < p->start[leaf + 1]; i++) {
    const int32_t target = p->target[i];
    const double w = weight[i], old = sums[target];
    /* as numpy's: a NaN stays */
    const int keep = old != old || (w == w && (p->op == FL_TREE_MIN ? old <= w : old >= w));
    if (!seen[target] || !keep)
      sums[target] = w;
    seen[target] = 1;
  }
}

/* What a leaf says, added to the sums of a row; `seen` is NULL for sums, and says which targets have been met for MIN and MAX. */
static inline __attribute__((always_inline)) void FL_TREE_(add)(const fl_trees *p, int64_t leaf, double *sums, char *seen) {
  const FL_TREE_X *weight = (const FL_TREE_X *)p->weight;
  if (seen != NULL) {
    FL_TREE_(extreme)(p, leaf, sums, seen);
  } else if (p->kind == FL_TREE_SINGLE) {
    sums[0] += weight[leaf];
  } else if (p->kind == FL_TREE_DENSE) {
    const FL_TREE_X *w = weight + leaf * p->targets;
    for (int64_t i = 0; i < p->targets; i++)
      sums[i] += w[i];
  } else {
    for (int64_t i = p->start[leaf]; i < p->start[leaf + 1]; i++)
      sums[p->target[i]] += weight[i];
  }
}

static int FL_TREE_(has_nan)(const FL_TREE_X *x, int64_t n) {
  int found = 0;
  for (int64_t i = 0; i < n; i++)
    found |= x[i] != x[i];
  return found;
}

/* `rows` <= FL_TREE_ROWS rows of x; sums and seen have room for all of them. */
static void FL_TREE_(rows)(const fl_trees *p, const FL_TREE_X *x, int64_t rows, double *sums, char *seen) {
  /* Of fewer rows, reading the tops of trees takes longer than walking. */
  const fl_tree_tops_fn tops = rows >= FL_TREE_LANES ? FL_TREE_TOPS(p) : NULL;
  const int64_t n = p->targets, whole = tops != NULL ? rows : rows / FL_TREE_LANES * FL_TREE_LANES;
  const int64_t ways_out = (int64_t)1 << p->storeys;
  const FL_TREE_(node) *nodes = (const FL_TREE_(node) *)p->nodes;
  const FL_TREE_X *lanes[FL_TREE_LANES];
  int64_t at[FL_TREE_LANES];
  char nan[FL_TREE_ROWS], any = 0;
  uint8_t ways[FL_TREE_ROWS];
  for (int64_t r = 0; r < rows; r++)
    /* with more columns than steps, not all of them are searched first */
    any |= nan[r] = p->columns > p->steps || FL_TREE_(has_nan)(x + r * p->columns, p->columns);
  for (int64_t r = 0; r < whole; r++)
    nan[r / FL_TREE_LANES * FL_TREE_LANES] |= nan[r];
  for (int64_t t = 0; t < p->trees && whole; t++) {
    const int32_t *exits = tops == NULL ? NULL : p->exits + (t - 1) * ways_out; /* the first way out is number ways_out */
    int64_t depth = p->depth[t];
    if (tops != NULL) {
      const fl_tree_top top = {p->top_feature + t * 64, p->top_split + t * 64, p->top_missing[t], p->storeys, p->used, p->columns};
      tops(&top, (const float *)x, rows, any, ways);
      depth -= p->storeys;
      if (depth <= 0 && seen == NULL && p->kind == FL_TREE_SINGLE) {
        const FL_TREE_X *weight = (const FL_TREE_X *)p->weight - 1; /* of leaf 0, whose number is -1 */
        for (int64_t r = 0; r < rows; r++)
          sums[r] += weight[-exits[ways[r]]];
        continue;
      }
    }
    for (int64_t g = 0; g < whole; g += FL_TREE_LANES) {
      const int count = whole - g < FL_TREE_LANES ? (int)(whole - g) : FL_TREE_LANES;
      for (int k = 0; k < FL_TREE_LANES; k++) {
        const int64_t row = g + (k < count ? k : 0);
        lanes[k] = x + row * p->columns;
        at[k] = tops != NULL ? exits[ways[row]] : p->roots[t];
      }
      if (nan[g])
        FL_TREE_(walk)(nodes, p->missing, lanes, at, depth, 1);
      else
        FL_TREE_(walk)(nodes, p->missing, lanes, at, depth, 0);
      for (int k = 0; k < count; k++)
        FL_TREE_(add)(p, -1 - at[k], sums + (g + k) * n, seen == NULL ? NULL : seen + (g + k) * n);
    }
  }
  for (int64_t r = whole; r < rows; r++) {
    for (int k = 0; k < FL_TREE_LANES; k++)
      lanes[k] = x + r * p->columns;
    for (int64_t t = 0; t < p->trees; t += FL_TREE_LANES) {
      const int count = p->trees - t < FL_TREE_LANES ? (int)(p->trees - t) : FL_TREE_LANES;
      int depth = 0;
      for (int k = 0; k < FL_TREE_LANES; k++) {
        const int64_t tree = k < count ? t + k : t;
        at[k] = p->roots[tree];
        depth = p->depth[tree] > depth ? p->depth[tree] : depth;
      }
      if (nan[r])
        FL_TREE_(walk)(nodes, p->missing, lanes, at, depth, 1);
      else
        FL_TREE_(walk)(nodes, p->missing, lanes, at, depth, 0);
      for (int k = 0; k < count; k++)
        FL_TREE_(add)(p, -1 - at[k], sums + r * n, seen == NULL ? NULL : seen + r * n);
    }
  }
}

/* The leaves, the last one first, and the nodes after them: room for all of both. */
static void FL_TREE_(lay)(void *to, int64_t nodes, int64_t leaves, const int32_t *feature, const void *split, const int32_t *child) {
  FL_TREE_(node) *node = (FL_TREE_(node) *)to + leaves;
  for (int64_t i = 0; i < leaves; i++) {
    node[-1 - i].split = 0;
    node[-1 - i].feature = 0;
    node[-1 - i].child[0] = node[-1 - i].child[1] = (int32_t)(-1 - i);
  }
  for (int64_t i = 0; i < nodes; i++) {
    node[i].split = ((const FL_TREE_X *)split)[i];
    node[i].feature = feature[i];
    node[i].child[0] = child[2 * i];
    node[i].child[1] = child[2 * i + 1];
  }
}
