"""Pooling as other modules call it: adaptive pools do, where all bins are alike."""

# divide: 0, by the positions in the image. Makes the step, or runs on the arrays x and out.
cdef object pooling(bint as_step, x, out, tuple in_shape, tuple out_shape, kernel, stride, dilation, pads, int divide, float factor,
                    bint channels_last, bint average)
