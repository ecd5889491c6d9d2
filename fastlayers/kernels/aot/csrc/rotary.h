/* Rotary positions: pairs of values are rotated by an angle that grows with the position. */

/* `rows` rows of d floats one after the other, all of one position, whose cosines and sines are given for each of `half` pairs. A pair
 * is (x[i], x[half + i]), or (x[2 i], x[2 i + 1]) if `paired`; what is after 2 half is copied. Plain loops: no sum runs across lanes. */
static void fl_f32_rotary(const float *x, const float *cos, const float *sin, float *out, int64_t rows, int64_t d, int64_t half, int paired) {
  for (int64_t r = 0; r < rows; r++, x += d, out += d) {
    if (paired)
      for (int64_t i = 0; i < half; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        out[2 * i] = a * cos[i] - b * sin[i];
        out[2 * i + 1] = a * sin[i] + b * cos[i];
      }
    else {
      int64_t i = 0;
      for (; i + VW <= half; i += VW) {
        const vf a = vload(x + i), b = vload(x + half + i), c = vload(cos + i), s = vload(sin + i);
        vstore(out + i, a * c - b * s);
        vstore(out + half + i, a * s + b * c);
      }
      for (; i < half; i++) {
        const float a = x[i], b = x[half + i];
        out[i] = a * cos[i] - b * sin[i];
        out[half + i] = a * sin[i] + b * cos[i];
      }
    }
    memcpy(out + 2 * half, x + 2 * half, (size_t)(d - 2 * half) * 4);
  }
}
