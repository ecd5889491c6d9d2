static void fl_f32_lstm_step(const fl_lstm_step *p) { (void)p; }
static void fl_f32_lstm_gates(const float *g, float *c, float *h, int64_t r, int64_t hp) { (void)g; (void)c; (void)h; (void)r; (void)hp; }
