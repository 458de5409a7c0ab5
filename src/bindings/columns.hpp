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

/// The array keeps `owner`, of which `values` is a part, alive.
template <typename Owner, typename T, typename Allocator>
nanobind::object column(const std::shared_ptr<Owner>& owner, const std::vector<T, Allocator>& values) {
    auto* held = new std::shared_ptr<Owner>(owner);
    const nanobind::capsule capsule(held, [](void* p) noexcept { delete static_cast<std::shared_ptr<Owner>*>(p); });
    const std::size_t shape[1] = {values.size()};
    return nanobind::cast(
        nanobind::ndarray<nanobind::numpy, const T, nanobind::ndim<1>>(values.data(), 1, shape, capsule));
}

/// The same of 0 and 1, as truth values.
template <typename Owner, typename Allocator>
nanobind::object flags_column(const std::shared_ptr<Owner>& owner, const std::vector<std::uint8_t, Allocator>& values) {
    auto* held = new std::shared_ptr<Owner>(owner);
    const nanobind::capsule capsule(held, [](void* p) noexcept { delete static_cast<std::shared_ptr<Owner>*>(p); });
    const std::size_t shape[1] = {values.size()};
    static_assert(sizeof(bool) == 1);
    return nanobind::cast(nanobind::ndarray<nanobind::numpy, const bool, nanobind::ndim<1>>(
        reinterpret_cast<const bool*>(values.data()), 1, shape, capsule));
}

/// An array of its own.
template <typename T, typename Allocator>
nanobind::object owned_column(std::vector<T, Allocator> values) {
    using Held = std::vector<T, Allocator>;
    auto* held = new Held(std::move(values));
    const nanobind::capsule capsule(held, [](void* p) noexcept { delete static_cast<Held*>(p); });
    const std::size_t shape[1] = {held->size()};
    return nanobind::cast(nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(held->data(), 1, shape, capsule));
}

/// The same of 0 and 1, as truth values.
template <typename Allocator>
nanobind::object owned_flags(std::vector<std::uint8_t, Allocator> values) {
    using Held = std::vector<std::uint8_t, Allocator>;
    auto* held = new Held(std::move(values));
    const nanobind::capsule capsule(held, [](void* p) noexcept { delete static_cast<Held*>(p); });
    const std::size_t shape[1] = {held->size()};
    return nanobind::cast(nanobind::ndarray<nanobind::numpy, bool, nanobind::ndim<1>>(
        reinterpret_cast<bool*>(held->data()), 1, shape, capsule));
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
