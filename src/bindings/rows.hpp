// Lists of dicts, as Python gets what it asks of modules.
#pragma once

#include <nanobind/nanobind.h>

namespace ioweir {

/// One for each item, which fill(row, item) fills.
template <typename Items, typename Fill>
nanobind::list rows_of(const Items& items, Fill&& fill) {
    nanobind::list rows;
    for (const auto& item : items) {
        nanobind::dict row;
        fill(row, item);
        rows.append(row);
    }
    return rows;
}

}  // namespace ioweir
