// Python bindings of the kernels: which there are and what they take. What does not live here: their patterns as plans (explain.cpp).
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bindings/kernel_of.hpp"
#include "bindings/planner.hpp"
#include "bindings/text.hpp"
#include "kernels/kernel.hpp"

namespace nb = nanobind;

namespace {

nb::list known_kernels() {
    nb::list all;
    for (const ioweir::kernels::KernelInfo& kernel : ioweir::kernels::known_kernels()) {
        nb::list parameters;
        for (const auto& parameter : kernel.parameters) {
            nb::dict row;
            row["name"] = std::string(parameter.name);
            row["default"] = std::string(parameter.default_value);
            row["meaning"] = std::string(parameter.meaning);
            parameters.append(row);
        }
        nb::dict row;
        row["name"] = std::string(kernel.name);
        row["summary"] = std::string(kernel.summary);
        row["source"] = std::string(kernel.source);
        row["parameters"] = parameters;
        all.append(row);
    }
    return all;
}

void check_kernel(const std::string& name, int ranks, const std::vector<std::string>& words) {
    (void)ioweir::kernel_of(name, ranks, words);
}

/// What each rank asks for in each call: of neighbouring pieces one.
nb::list kernel_requests(const std::string& name, int ranks, const std::vector<std::string>& words) {
    const auto kernel = ioweir::kernel_of(name, ranks, words);
    nb::list calls;
    for (std::int64_t call = 0; call < kernel->calls(); ++call) {
        const ioweir::kernels::CallPattern pattern(kernel, call);
        nb::list of_ranks;
        for (int rank = 0; rank < ranks; ++rank) {
            nb::list pieces;
            for (const ioweir::layout::Extent& piece : ioweir::layout::collect(pattern, rank))
                pieces.append(nb::make_tuple(piece.offset, piece.length));
            of_ranks.append(pieces);
        }
        calls.append(of_ranks);
    }
    return calls;
}

std::int64_t kernel_largest(const std::string& name, int ranks, const std::vector<std::string>& words) {
    const auto kernel = ioweir::kernel_of(name, ranks, words);
    std::int64_t most = 0;
    for (std::int64_t call = 0; call < kernel->calls(); ++call) {
        const ioweir::kernels::CallPattern pattern(kernel, call);
        for (int rank = 0; rank < ranks; ++rank) most = std::max(most, pattern.rank_bytes(rank));
    }
    return most;
}

}  // namespace

void bind_kernels(nb::module_& m) {
    m.def("known_kernels", &known_kernels, "Every kernel: name, summary, source, parameters {name, default, meaning}.");
    m.def("check_kernel", &check_kernel, nb::arg("name"), nb::arg("ranks"), nb::arg("settings"),
          "Raises ValueError when there is no such kernel, parameter or value.");
    m.def("kernel_requests", &kernel_requests, nb::arg("name"), nb::arg("ranks"), nb::arg("settings"),
          "Of each call and rank what it asks for, as (offset, length).");
    m.def("kernel_largest", &kernel_largest, nb::arg("name"), nb::arg("ranks"), nb::arg("settings"),
          "Bytes of one rank in one call, at most.");
}
