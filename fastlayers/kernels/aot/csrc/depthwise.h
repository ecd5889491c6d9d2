static void fl_f32_depthwise_last(const fl_dw_last *p) { (void)p; }
static void fl_f32_depthwise_first(const fl_dw_first *p) { (void)p; }
