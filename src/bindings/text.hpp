// Text between Python and C++. File names are bytes: those that are no UTF-8 go to and fro as Python has them (PEP 383,
// "surrogateescape"). In place of nanobind/stl/string.h, which refuses such names.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "base/result.hpp"

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
    NB_TYPE_CASTER(std::string, const_name("str"))

    bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
        if (!PyUnicode_Check(source.ptr())) return false;
        PyObject* const bytes = PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogateescape");
        if (bytes == nullptr) {
            PyErr_Clear();
            return false;
        }
        value.assign(PyBytes_AsString(bytes), static_cast<std::size_t>(PyBytes_Size(bytes)));
        Py_DECREF(bytes);
        return true;
    }
    static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
        return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
    }
};

}  // namespace nanobind::detail

namespace ioweir {

/// Throws Python's ValueError; the text may hold bytes of names.
[[noreturn]] inline void raise_value_error(const std::string& text) {
    const auto words = nanobind::steal<nanobind::object>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
    if (words.is_valid()) PyErr_SetObject(PyExc_ValueError, words.ptr());
    throw nanobind::python_error();
}

/// What was made; throws Python's ValueError where it could not be.
template <typename Value>
Value value_of(Result<Value> result) {
    if (!result) raise_value_error(result.error().message());
    return result.take();
}

}  // namespace ioweir
