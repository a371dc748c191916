# SPDX-License-Identifier: Apache-2.0
# The inputs and outputs of a program as NumPy arrays: checks them and makes new ones.
cimport numpy as cnp
from cpython.tuple cimport PyTuple_GET_ITEM

cnp.import_array()

cdef extern from "numpy/arrayobject.h" nogil:
    ctypedef struct PyArrayObject:
        pass
    ctypedef struct PyArray_Descr:
        pass
    bint PyArray_ISWRITEABLE(PyArrayObject* array)
    void* PyArray_DATA(PyArrayObject* array)

cdef extern from "numpy/arrayobject.h":
    object PyArray_Empty(int ndim, const cnp.npy_intp* dims, PyArray_Descr* stolen_dtype, int fortran)

cdef extern from "_native/arena.hpp" namespace "cyxla::glue":
    cdef cppclass Arena:
        Arena() noexcept
        char* take(size_t size_bytes) noexcept

cdef extern from "_native/jax_arrays.hpp" namespace "cyxla::glue":
    cdef cppclass JaxArrayAddress:
        pass

cdef extern from "_native/elements.hpp" namespace "cyxla::glue":
    cdef enum Element "cyxla::glue::Element":
        kBool
        kS64
        kU64
        kF64
        kC128
        kOther
    bint are_bools(const void* data, size_t count) noexcept

cdef extern from "_native/arguments.hpp" namespace "cyxla::glue":
    cdef cppclass Target:
        PyArray_Descr* dtype
        Element element
        size_t size_bytes
        vector[cnp.npy_intp] dimensions
        int rank()
    Target make_target(object dtype, size_t size_bytes, const vector[cnp.npy_intp]& dimensions) except +
    void set_memmap_type(object type) noexcept
    bint is_plain_array(PyObject* value) noexcept
    bint fits(const Target& target, PyObject* value) noexcept
    const void* convert_argument(
        PyObject* value, const Target& target, Arena& arena, JaxArrayAddress* known, Element& source, int& ran_code,
        int& is_known) noexcept
    bint is_narrowing(Element source, const Target& target) noexcept
    void normalise_bools(const void* data, size_t count, void* destination) noexcept

set_memmap_type(numpy.memmap)


cdef class _Arrays:
    """The types of a program's inputs or outputs, in the forms that a call needs."""
    cdef readonly tuple types        # ArrayType of each
    cdef tuple names                 # path name of each, or None
    cdef tuple dtypes
    cdef str noun
    cdef vector[Target] targets      # their descriptors are borrowed from dtypes
    cdef vector[JaxArrayAddress] known
    cdef bint aligned                # whether new arrays must be at aligned addresses
    cdef bint has_bools

    def __init__(self, types, names, str noun):
        cdef vector[cnp.npy_intp] shape
        self.types = tuple(types)
        self.names = None if names is None else tuple(names)
        self.noun = noun
        self.dtypes = tuple(type_.dtype for type_ in self.types)
        for type_, dtype in zip(self.types, self.dtypes):
            shape = type_.shape
            self.targets.push_back(make_target(dtype, type_.size_bytes, shape))
            self.known.emplace_back()
            self.has_bools = self.has_bools or self.targets.back().element == kBool

    cdef bint fits(self, Py_ssize_t i, PyObject* array) noexcept:
        """Whether an object is an array that a call can use unchanged."""
        return fits(self.targets[i], array)

    cdef object empty(self, Py_ssize_t i):
        if self.aligned:
            return memory.aligned_empty(self.types[i].shape, self.dtypes[i])
        Py_INCREF(self.dtypes[i])
        return PyArray_Empty(self.targets[i].rank(), self.targets[i].dimensions.data(), self.targets[i].dtype, 0)

    cdef str where(self, Py_ssize_t i):
        return f"{self.noun} {i}" if self.names is None else f"{self.noun} {i} ({self.names[i]!r})"

    cdef tuple as_tuple(self, object arrays):
        """Returns `arrays` as a tuple of the right length, which owns the references."""
        cdef Py_ssize_t expected = len(self.types)
        if not isinstance(arrays, (list, tuple)):
            raise errors.ArgumentError(
                f"the {self.noun}s must be a list or tuple of {errors.counted(expected, 'array')},"
                f" not {type(arrays).__name__}; write [array] for one, jax.tree.leaves(tree) for a pytree"
            )
        result = tuple(arrays)
        if len(result) != expected:
            wanted = ", ".join(f"{self.where(i)}: {type_}" for i, type_ in enumerate(self.types))
            raise errors.ArgumentError(
                f"expected {errors.counted(expected, self.noun)}, got {len(result)};"
                f" the program's are ({wanted})"
            )
        return result

    cdef int check_exact(self, Py_ssize_t i, PyObject* array, bint writable) except -1:
        """Raises unless a call can use the array's own memory."""
        if not self.fits(i, array):
            value = <object>array
            given = type(value).__name__
            if isinstance(value, cnp.ndarray):
                plain = cnp.ndarray.view(value, cnp.ndarray)  # a subclass may override the attributes
                contiguity = "" if plain.flags.c_contiguous else " that is not C-contiguous"
                given = dtypes.describe(plain.dtype, plain.shape) + contiguity
                if not is_plain_array(array):
                    given = f"a {type(value).__name__}; pass its np.asarray(): {given}"
            raise errors.ArgumentError(
                f"{self.where(i)}: expected a C-contiguous array {self.types[i]}, got {given}; it is used in"
                " place, so nothing is converted"
            )
        if writable and not PyArray_ISWRITEABLE(<PyArrayObject*>array):
            raise errors.ArgumentError(f"{self.where(i)}: {read_only(<object>array)}")
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


cdef str read_only(array):
    if isinstance(array, numpy.memmap):
        return f"the np.memmap of {str(array.filename)!r} is read-only; open it with mode='r+'"
    return "the array is read-only; give a writable one, such as np.empty_like(array)"


cdef bint overlap(PyObject* a, size_t a_bytes, PyObject* b, size_t b_bytes) noexcept:
    cdef char* a_data = <char*>PyArray_DATA(<PyArrayObject*>a)
    cdef char* b_data = <char*>PyArray_DATA(<PyArrayObject*>b)
    return a_bytes > 0 and b_bytes > 0 and a_data < b_data + b_bytes and b_data < a_data + a_bytes


cdef PyObject* PyTuple_GET_ITEM_ptr(tuple items, Py_ssize_t i) noexcept:
    return <PyObject*>PyTuple_GET_ITEM(items, i)
