// Vectors as numpy arrays that share their memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <vector>

#include "format/reader.hpp"

namespace ioweir {

/// The array keeps `owner`, of which `values` is a part, alive.
template <typename T>
nanobind::object column(const std::shared_ptr<format::Events>& owner, const std::vector<T>& values) {
    auto* held = new std::shared_ptr<format::Events>(owner);
    const nanobind::capsule capsule(held,
                                    [](void* p) noexcept { delete static_cast<std::shared_ptr<format::Events>*>(p); });
    const std::size_t shape[1] = {values.size()};
    return nanobind::cast(
        nanobind::ndarray<nanobind::numpy, const T, nanobind::ndim<1>>(values.data(), 1, shape, capsule));
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
