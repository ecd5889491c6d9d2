/* Linear attention: a state of d rows and e columns for each head of keys, which every step changes and every query of the step reads.
 * Columns do not depend on each other: FL_LINEAR_STRIP of them are taken through all steps at a time, their state staying in the first-level cache.
 * Plain loops over columns: no sum runs across lanes. */

FL_INLINE void fl_linear_columns(const fl_linear *p, int64_t cols) {
  float u[FL_LINEAR_STRIP];
  for (int64_t t = 0; t < p->steps; t++) {
    const float *k = p->k + t * p->k_step, *v = p->v + t * p->v_step;
    const float *gate = p->gate ? p->gate + t * p->gate_step : NULL;
    for (int64_t j = 0; j < cols; j++)
      u[j] = 0;
    if (p->beta != NULL || gate != NULL)
      for (int64_t i = 0; i < p->d; i++) {
        float *restrict s = p->state + i * p->e;
        const float g = gate == NULL ? 1 : gate[p->gates > 1 ? i : 0], ki = k[i];
        for (int64_t j = 0; j < cols; j++) {
          s[j] *= g;
          u[j] += ki * s[j];
        }
      }
    const float beta = p->beta == NULL ? 1 : p->beta[t * p->beta_step];
    for (int64_t j = 0; j < cols; j++)
      u[j] = p->beta == NULL ? v[j] : beta * (v[j] - u[j]);
    for (int64_t i = 0; i < p->d; i++) {
      float *restrict s = p->state + i * p->e;
      const float ki = k[i];
      for (int64_t j = 0; j < cols; j++)
        s[j] += ki * u[j];
    }
    for (int64_t h = 0; h < p->heads; h++) {
      const float *q = p->q + t * p->q_step + h * p->d;
      float *restrict out = p->out + t * p->out_step + h * p->e;
      for (int64_t j = 0; j < cols; j++)
        u[j] = 0;
      for (int64_t i = 0; i < p->d; i++) {
        const float *s = p->state + i * p->e, qi = q[i];
        for (int64_t j = 0; j < cols; j++)
          u[j] += qi * s[j];
      }
      for (int64_t j = 0; j < cols; j++)
        out[j] = p->scale * u[j];
    }
  }
}

static void fl_f32_linear(const fl_linear *p) {
  if (p->cols == FL_LINEAR_STRIP) /* a number that the compiler knows */
    fl_linear_columns(p, FL_LINEAR_STRIP);
  else
    fl_linear_columns(p, p->cols);
}
