"""Several datasets in one call (HDF5 1.14), through ctypes. Arguments: the HDF5 library and FILE."""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
Id = ctypes.c_int64
ids = {
    "H5Fcreate": [ctypes.c_char_p, ctypes.c_uint, Id, Id],
    "H5Screate_simple": [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p],
    "H5Dcreate2": [Id, ctypes.c_char_p, Id, Id, Id, Id, Id],
}
for name, parameters in ids.items():
    getattr(library, name).restype = Id
    getattr(library, name).argtypes = parameters
for name in ("H5Dclose", "H5Fclose", "H5Sclose"):
    getattr(library, name).argtypes = [Id]
library.H5open()
whole = Id.in_dll(library, "H5T_NATIVE_INT_g").value
short = Id.in_dll(library, "H5T_NATIVE_SHORT_g").value
size = ctypes.c_uint64(10)
file = library.H5Fcreate(sys.argv[2].encode(), 2, 0, 0)
space = library.H5Screate_simple(1, ctypes.byref(size), None)
sets = (Id * 2)(
    library.H5Dcreate2(file, b"a", whole, space, 0, 0, 0), library.H5Dcreate2(file, b"b", whole, space, 0, 0, 0)
)
types, all_of_it = (Id * 2)(whole, short), (Id * 2)(0, space)
first, second = (ctypes.c_int * 10)(*range(10)), (ctypes.c_short * 10)(*range(10))
buffers = (ctypes.c_void_p * 2)(ctypes.addressof(first), ctypes.addressof(second))
for call in (library.H5Dwrite_multi, library.H5Dread_multi):  # 10 x 4 + 10 x 2 bytes each
    call.argtypes = [ctypes.c_size_t, *[ctypes.c_void_p] * 4, Id, ctypes.c_void_p]
    print(call(2, sets, types, all_of_it, all_of_it, 0, buffers))
for dataset in sets:
    library.H5Dclose(dataset)
library.H5Sclose(space)
print(library.H5Fclose(file), sum(first), sum(second))
