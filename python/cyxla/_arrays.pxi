# SPDX-License-Identifier: Apache-2.0
# The inputs and outputs of a program as NumPy arrays: what fits, what does not, and new ones.
cimport numpy as cnp
from cpython.tuple cimport PyTuple_GET_ITEM

cnp.import_array()

cdef extern from "numpy/arrayobject.h" nogil:
    ctypedef struct PyArrayObject:
        pass
    ctypedef struct PyArray_Descr:
        pass
    bint PyArray_CheckExact(PyObject* array)
    PyArray_Descr* PyArray_DESCR(PyArrayObject* array)
    bint PyArray_IS_C_CONTIGUOUS(PyArrayObject* array)
    bint PyArray_ISWRITEABLE(PyArrayObject* array)
    void* PyArray_DATA(PyArrayObject* array)
    int PyArray_NDIM(PyArrayObject* array)
    cnp.npy_intp* PyArray_DIMS(PyArrayObject* array)

cdef extern from "numpy/arrayobject.h":
    object PyArray_Empty(int ndim, const cnp.npy_intp* dims, PyArray_Descr* stolen_dtype, int fortran)


cdef class _Arrays:
    """The inputs or the outputs of a program: their types, in the forms that a call needs."""
    cdef readonly tuple types        # ArrayType of each
    cdef tuple names                 # path name of each, or None
    cdef tuple dtypes
    cdef str noun
    cdef vector[PyArray_Descr*] descriptors   # borrowed from dtypes
    cdef vector[int] ranks
    cdef vector[vector[cnp.npy_intp]] shapes
    cdef bint aligned                # whether new arrays must be at aligned addresses

    def __init__(self, types, names, str noun):
        cdef vector[cnp.npy_intp] shape
        self.types = tuple(types)
        self.names = None if names is None else tuple(names)
        self.noun = noun
        self.dtypes = tuple(type_.dtype for type_ in self.types)
        for type_, dtype in zip(self.types, self.dtypes):
            shape = type_.shape
            self.descriptors.push_back(<PyArray_Descr*><PyObject*>dtype)
            self.ranks.push_back(len(type_.shape))
            self.shapes.push_back(shape)

    cdef bint fits(self, Py_ssize_t i, PyObject* array) noexcept:
        """Whether an object is an array that a call can use as it is."""
        cdef int k
        if not PyArray_CheckExact(array) or PyArray_DESCR(<PyArrayObject*>array) != self.descriptors[i]:
            return False
        if PyArray_NDIM(<PyArrayObject*>array) != self.ranks[i] or not PyArray_IS_C_CONTIGUOUS(<PyArrayObject*>array):
            return False
        for k in range(self.ranks[i]):
            if PyArray_DIMS(<PyArrayObject*>array)[k] != self.shapes[i][k]:
                return False
        return True

    cdef object empty(self, Py_ssize_t i):
        if self.aligned:
            return memory.aligned_empty(self.types[i].shape, self.dtypes[i])
        Py_INCREF(self.dtypes[i])
        return PyArray_Empty(self.ranks[i], self.shapes[i].data(), self.descriptors[i], 0)

    cdef str where(self, Py_ssize_t i):
        return f"{self.noun} {i}" if self.names is None else f"{self.noun} {i} ({self.names[i]!r})"

    cdef tuple as_tuple(self, object arrays):
        """`arrays` as a tuple of the right length, which then holds the references."""
        cdef Py_ssize_t expected = len(self.types)
        if not isinstance(arrays, (list, tuple)):
            raise errors.ArgumentError(
                f"the {self.noun}s must be a list or tuple of {expected} arrays,"
                f" not {type(arrays).__name__}; write [array] for one, jax.tree.leaves(tree) for a pytree"
            )
        result = tuple(arrays)
        if len(result) != expected:
            wanted = ", ".join(f"{self.where(i)}: {type_}" for i, type_ in enumerate(self.types))
            raise errors.ArgumentError(
                f"expected {expected} {self.noun}{'s' if expected != 1 else ''}, got {len(result)};"
                f" the program's are ({wanted})"
            )
        return result

    cdef int check_exact(self, Py_ssize_t i, PyObject* array, bint writable) except -1:
        """Raises unless a call can use the array's own memory."""
        if not self.fits(i, array):
            value = <object>array
            given = type(value).__name__
            if isinstance(value, cnp.ndarray):
                plain = cnp.ndarray.view(value, cnp.ndarray)  # a subclass may say anything of itself
                contiguity = "" if plain.flags.c_contiguous else " that is not C-contiguous"
                given = dtypes.describe(plain.dtype, plain.shape) + contiguity
                if not PyArray_CheckExact(array):
                    given = f"a {type(value).__name__}, whose np.asarray() would do: {given}"
            raise errors.ArgumentError(
                f"{self.where(i)}: expected a C-contiguous array {self.types[i]}, got {given}; it is used in"
                " place, so nothing is converted"
            )
        if writable and not PyArray_ISWRITEABLE(<PyArrayObject*>array):
            raise errors.ArgumentError(f"{self.where(i)}: the array is read-only")
        return 0

    cdef int check_disjoint(self, tuple arrays, const size_t* sizes_bytes) except -1:
        """Raises when two outputs share memory."""
        cdef Py_ssize_t i, j
        cdef PyObject* a
        cdef PyObject* b
        for i in range(len(arrays)):
            a = PyTuple_GET_ITEM_ptr(arrays, i)
            for j in range(i):
                b = PyTuple_GET_ITEM_ptr(arrays, j)
                if a != <PyObject*>None and b != <PyObject*>None and overlap(a, sizes_bytes[i], b, sizes_bytes[j]):
                    raise errors.ArgumentError(f"{self.where(j)} and {self.where(i)} share memory")
        return 0


cdef bint overlap(PyObject* a, size_t a_bytes, PyObject* b, size_t b_bytes) noexcept:
    cdef char* a_data = <char*>PyArray_DATA(<PyArrayObject*>a)
    cdef char* b_data = <char*>PyArray_DATA(<PyArrayObject*>b)
    return a_bytes > 0 and b_bytes > 0 and a_data < b_data + b_bytes and b_data < a_data + a_bytes


cdef PyObject* PyTuple_GET_ITEM_ptr(tuple items, Py_ssize_t i) noexcept:
    return <PyObject*>PyTuple_GET_ITEM(items, i)
