/* Probabilities of classes at the leaves of a binary tree: a node with sum z goes left with probability 1 / (1 + exp(-z)), else right.
 *
 * A child of 0 and above is a node, one below 0 is class -1 - child. Logarithms are added in double: paths may be long, and what all
 * classes share must not be off by the same error.
 */
/* Sums of `count` <= VW nodes, a lane each; the others are 0. The order of a sum depends on d alone. */
FL_INLINE vf fl_tree_sums(const float *x, const float *weight, const float *bias, int64_t d, const int64_t *nodes, int64_t count) {
  vf v[VW];
  float added[VW];
  const int64_t whole = d / (4 * VW) * (4 * VW);
  for (int64_t k = 0; k < VW; k++) {
    v[k] = vset(0);
    added[k] = 0;
  }
  for (int64_t k = 0; k < count; k++) {
    const float *w = weight + nodes[k] * d;
    vf a = vset(0), b = vset(0), c = vset(0), e = vset(0);
    int64_t i = 0;
    for (; i < whole; i += 4 * VW) {
      a = vfma(vload(x + i), vload(w + i), a);
      b = vfma(vload(x + i + VW), vload(w + i + VW), b);
      c = vfma(vload(x + i + 2 * VW), vload(w + i + 2 * VW), c);
      e = vfma(vload(x + i + 3 * VW), vload(w + i + 3 * VW), e);
    }
    for (; i + VW <= d; i += VW)
      a = vfma(vload(x + i), vload(w + i), a);
    if (i < d)
      b = vfma(vget_part(x + i, d - i, 0), vget_part(w + i, d - i, 0), b);
    v[k] = (a + b) + (c + e);
    added[k] = bias ? bias[nodes[k]] : 0;
  }
  FL_TREE(v, fl_add);
  return v[0] + vload(added);
}

/* log(1 + exp(-|z|)): less than the logarithm of the more probable side by that */
FL_INLINE vf fl_tree_loss(vf z) { return vlog1p_unit(vexp_neg(-vabs(z))); }

static float fl_f32_tree_path(const float *x, const float *weight, const float *bias, int64_t d, const int64_t *points,
                              const int64_t *codes, int64_t length) {
  double total = 0;
  for (int64_t i = 0; i < length; i += VW) {
    const int64_t count = length - i < VW ? length - i : VW;
    float z[VW], loss[VW];
    const vf sums = fl_tree_sums(x, weight, bias, d, points + i, count);
    vstore(z, sums);
    vstore(loss, fl_tree_loss(sums));
    for (int64_t k = 0; k < count; k++) {
      const float side = codes[i + k] ? -z[k] : z[k];
      total += (side > 0 ? 0.0 : (double)side) - loss[k]; /* NaN stays */
    }
  }
  return (float)total;
}

static void fl_f32_tree_spread(const float *sums, const int64_t *order, const int64_t *left, const int64_t *right, int64_t m,
                               double *logs, float *out) {
  if (m == 0) {
    out[0] = 0;
    return;
  }
  logs[order[0]] = 0;
  for (int64_t i = 0; i < m; i += VW) {
    const int64_t count = m - i < VW ? m - i : VW;
    float z[VW] = {0}, loss[VW];
    for (int64_t k = 0; k < count; k++)
      z[k] = sums[order[i + k]];
    vstore(loss, fl_tree_loss(vload(z)));
    for (int64_t k = 0; k < count; k++) {
      const int64_t node = order[i + k], a = left[node], b = right[node];
      const double here = logs[node] - loss[k];
      const double to_a = z[k] > 0 ? here : here + z[k], to_b = z[k] < 0 ? here : here - z[k];
      if (a < 0)
        out[-1 - a] = (float)to_a;
      else
        logs[a] = to_a;
      if (b < 0)
        out[-1 - b] = (float)to_b;
      else
        logs[b] = to_b;
    }
  }
}

/* The most probable class, the lowest of equals: down the more probable side first, then wherever what is left is not below what was found. A
 * child is never more probable than its node, so nothing is missed. `stack`: two positions more than the depth of the tree. */
static int64_t fl_f32_tree_best(const float *x, const float *weight, const float *bias, int64_t d, const int64_t *left,
                                const int64_t *right, int64_t root, fl_tree_place *stack, float *log) {
  int64_t best = -1, high = 0;
  double most = 0;
  stack[high++] = (fl_tree_place){0, root};
  while (high) {
    const fl_tree_place at = stack[--high];
    if (best >= 0 && at.log < most)
      continue;
    if (at.child < 0) {
      const int64_t class = -1 - at.child;
      if (best < 0 || at.log > most || (at.log == most && class < best)) {
        best = class;
        most = at.log;
      }
      continue;
    }
    const vf sums = fl_tree_sums(x, weight, bias, d, &at.child, 1);
    const float z = sums[0];
    const double here = at.log - fl_tree_loss(sums)[0];
    const fl_tree_place a = {z > 0 ? here : here + z, left[at.child]}, b = {z < 0 ? here : here - z, right[at.child]};
    stack[high++] = z > 0 ? b : a;
    stack[high++] = z > 0 ? a : b;
  }
  *log = (float)most;
  return best;
}
