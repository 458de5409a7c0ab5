// Vectors as numpy arrays that share their memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "format/reader.hpp"

namespace ioweir {

/// An array over `data` that keeps `held` alive.
template <typename T, typename Held>
nanobind::object array_over(T* data, std::size_t size, Held held) {
    const nanobind::capsule capsule(new Held(std::move(held)), [](void* p) noexcept { delete static_cast<Held*>(p); });
    const std::size_t shape[1] = {size};
    return nanobind::cast(nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(data, 1, shape, capsule));
}

/// `values` is a part of `owner`.
template <typename Owner, typename T, typename Allocator>
nanobind::object column(const std::shared_ptr<Owner>& owner, const std::vector<T, Allocator>& values) {
    return array_over<const T>(values.data(), values.size(), owner);
}

static_assert(sizeof(bool) == 1, "flags of one byte are truth values to Python");

/// The same of 0 and 1, as truth values.
template <typename Owner, typename Allocator>
nanobind::object flags_column(const std::shared_ptr<Owner>& owner, const std::vector<std::uint8_t, Allocator>& values) {
    return array_over<const bool>(reinterpret_cast<const bool*>(values.data()), values.size(), owner);
}

/// An array of its own. Moved, a vector's numbers stay where they are.
template <typename T, typename Allocator>
nanobind::object owned_column(std::vector<T, Allocator> values) {
    T* const data = values.data();
    const std::size_t size = values.size();
    return array_over<T>(data, size, std::move(values));
}

/// The same of 0 and 1, as truth values.
template <typename Allocator>
nanobind::object owned_flags(std::vector<std::uint8_t, Allocator> values) {
    bool* const data = reinterpret_cast<bool*>(values.data());
    const std::size_t size = values.size();
    return array_over<bool>(data, size, std::move(values));
}

/// `visit(name, member)` for every column.
template <typename Visit>
void for_each_column(Visit&& visit) {
    visit("process", &format::Events::process);
    visit("thread", &format::Events::thread);
    visit("seq", &format::Events::sequence);
    visit("parent", &format::Events::parent);
    visit("function", &format::Events::function);
    visit("origin", &format::Events::origin);
    visit("flags", &format::Events::flags);
    visit("path", &format::Events::path);
    visit("start_ns", &format::Events::start_ns);
    visit("duration_ns", &format::Events::duration_ns);
    visit("offset", &format::Events::offset);
    visit("bytes", &format::Events::bytes);
    visit("error", &format::Events::error);
    visit("site", &format::Events::site);
    visit("access", &format::Events::access);
}

}  // namespace ioweir
