// Signals: Ctrl-C while the compiled part works.
#pragma once

#include <Python.h>

#include <chrono>

#include "bindings/text.hpp"

namespace ioweir {

/// Lets Python look at its signals, now and then: to take the GIL costs up to 5 ms where other threads of Python work.
class Signals {
public:
    /// Has one of them raised an exception, which Python keeps? With the GIL or without.
    bool raised() {
        const auto now = std::chrono::steady_clock::now();
        if (now - looked_ < between_looks) return false;
        looked_ = now;
        const nanobind::gil_scoped_acquire looking;
        return PyErr_CheckSignals() != 0;
    }

private:
    static constexpr std::chrono::milliseconds between_looks{50};
    std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

}  // namespace ioweir
