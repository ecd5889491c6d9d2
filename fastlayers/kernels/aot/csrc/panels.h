/* Packs data (not weights) into panels of the product: the pixels of a channels-first convolution, sixteen at a time.
 *
 * The pixels of a panel mostly are next to each other: each run of neighbours is one piece, copied for every tap as a whole vector. A
 * piece's store runs over what belongs to the next piece, tap or panel, all of which are written later: hence the slack. Panels in
 * one piece are taken four at a time, so that each tap's row is read 256 bytes at a time. */
FL_INLINE void fl_copy_panel(const float *from, float *to) {
  FL_UNROLL for (int j = 0; j < FL_PANEL / VW; j++) vstore(to + j * VW, vload(from + j * VW));
}

static void fl_f32_panels(const fl_panels *p) {
  const int64_t panels = (p->n + FL_PANEL - 1) / FL_PANEL, size = p->klen * FL_PANEL;
  for (int64_t q = 0; q < panels;) {
    const int64_t *at = p->pixels + q * FL_PANEL, left = p->n - q * FL_PANEL;
    float *b = p->b + q * size;
    int64_t whole = 0; /* panels from here on that are in one piece */
    while (whole < 4 && left >= (whole + 1) * FL_PANEL) {
      int64_t i = whole * FL_PANEL;
      while (i < (whole + 1) * FL_PANEL && at[i] == at[0] + i)
        i++;
      if (i < (whole + 1) * FL_PANEL)
        break;
      whole++;
    }
    if (whole) {
      for (int64_t t = 0; t < p->klen; t++)
        for (int64_t w = 0; w < whole; w++)
          fl_copy_panel(p->base + p->taps[t] + at[w * FL_PANEL], b + w * size + t * FL_PANEL);
      q += whole;
      continue;
    }
    const int lanes = left < FL_PANEL ? (int)left : FL_PANEL;
    if (p->slack) {
      int start[FL_PANEL], pieces = 0;
      for (int i = 0; i < lanes; i++)
        if (!i || at[i] != at[i - 1] + 1)
          start[pieces++] = i;
      for (int64_t t = 0; t < p->klen; t++)
        for (int i = 0; i < pieces; i++)
          fl_copy_panel(p->base + p->taps[t] + at[start[i]], b + t * FL_PANEL + start[i]);
    } else {
      for (int64_t t = 0; t < p->klen; t++)
        for (int i = 0; i < lanes; i++)
          b[t * FL_PANEL + i] = p->base[p->taps[t] + at[i]];
    }
    for (int64_t t = 0; t < p->klen && lanes < FL_PANEL; t++)
      memset(b + t * FL_PANEL + lanes, 0, (size_t)(FL_PANEL - lanes) * 4);
    q++;
  }
}

static void fl_f32_gather(const float *from, int64_t step, float *to, int64_t n) {
  if (step == 1)
    memcpy(to, from, (size_t)n * 4);
  else if (step == 2) /* a constant step lets the compiler shuffle vectors */
    for (int64_t i = 0; i < n; i++)
      to[i] = from[2 * i];
  else if (step == 4)
    for (int64_t i = 0; i < n; i++)
      to[i] = from[4 * i];
  else
    for (int64_t i = 0; i < n; i++)
      to[i] = from[i * step];
}
