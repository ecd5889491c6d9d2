"""Memory of packed weights; see _panels.pxd."""

cimport cython
cimport numpy as cnp

from ._engine cimport need, release

from ...errors import FormatError

cnp.import_array()


@cython.final
cdef class Panels:
    """Packed weights. Immutable once they are filled."""

    def __dealloc__(self):
        if self.owner is None:
            release(self.data)

    @property
    def nbytes(self):
        """Bytes of the panels, or 0 where they are those of a file."""
        return self.bytes if self.owner is None else 0

    def array(self):
        """The values as a read-only array over this memory."""
        cdef cnp.npy_intp shape = <cnp.npy_intp>(self.bytes // sizeof(float))
        cdef cnp.ndarray view = cnp.PyArray_SimpleNewFromData(1, &shape, cnp.NPY_FLOAT32, self.data)
        cnp.set_array_base(view, self)
        view.flags.writeable = False
        return view


cdef Panels make_panels(size_t count, cnp.ndarray stored, str what):
    cdef Panels panels = Panels.__new__(Panels)
    panels.bytes = count * sizeof(float)
    if stored is None:
        panels.data = <float *>need(panels.bytes, what)
        return panels
    if cnp.PyArray_TYPE(stored) != cnp.NPY_FLOAT32 or not cnp.PyArray_ISCARRAY_RO(stored) or <size_t>cnp.PyArray_SIZE(stored) != count:
        raise FormatError(f"{what}: stored weights are {stored.dtype} of shape {(<object>stored).shape}: expected {count} float32 values")
    panels.data, panels.owner = <float *>cnp.PyArray_DATA(stored), stored
    return panels
