/* The extension module of a level: hands its table of kernels over in a capsule. Included where FL_LEVEL and `table` are defined, and
 * FL_FILL, if the table is made when the module is loaded: 0, or -1 with an error set. */
#define FL_JOIN_(a, b) a##b
#define FL_JOIN(a, b) FL_JOIN_(a, b)

static int fill(PyObject *module) {
#ifdef FL_FILL
  if (FL_FILL())
    return -1;
#endif
  PyObject *capsule = PyCapsule_New((void *)&table, FL_CAPSULE, NULL);
  if (capsule == NULL)
    return -1;
  int failed = PyModule_AddObjectRef(module, "table", capsule);
  Py_DECREF(capsule);
  return failed;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "_" FL_TEXT(FL_LEVEL), .m_slots = slots};

PyMODINIT_FUNC FL_JOIN(PyInit__, FL_LEVEL)(void) { return PyModuleDef_Init(&definition); }
