// TypeTable: the datatypes of a trace as runs of bytes. Types of which too little is known have none.
// What does not live here: what constructors mean (layout/core/type_values.hpp), which calls use them (requests.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "format/reader.hpp"
#include "layout/core/flat_type.hpp"

namespace ioweir::analysis {

class TypeTable {
public:
    /// Builds all of them, as far as memory is worth: at most 2^20 blocks a type, and four times as many in all.
    explicit TypeTable(const format::Trace& trace);
    /// `number`: index into Trace::datatypes. Null when its runs are not known.
    [[nodiscard]] std::shared_ptr<const layout::FlatType> find(std::uint32_t number) const { return types_[number]; }

private:
    std::vector<std::shared_ptr<const layout::FlatType>> types_;
};

}  // namespace ioweir::analysis
