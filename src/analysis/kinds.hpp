// What each function counts as, by number: its layer and its operation.
// What does not live here: the names of layers and operations (spec/layers.toml).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ioweir_generated/functions.hpp"

namespace ioweir::analysis {

struct FunctionKind {
    std::uint8_t layer = 0;  ///< position in Vocabulary::layers
    std::uint8_t op = 0;     ///< position in Vocabulary::ops
    bool collective = false;
    bool late = false;       ///< all that is known is that what it ends had ended by then
    bool begins = false;     ///< asynchronous: what it begins goes on behind its return
    bool completes = false;  ///< ends what another call began: its time counts, it is neither a call nor bytes
};

/// The names that the spec uses, in the order in which results are numbered.
struct Vocabulary {
    std::vector<std::string> layers;
    std::vector<std::string> ops;

    [[nodiscard]] std::size_t slots() const { return layers.size() * ops.size(); }
    /// Position of a name; the number of names when it is not there.
    static std::size_t position(const std::vector<std::string>& names, std::string_view name) {
        return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    }
    /// By function id. An Error when a function's layer or operation has no name here.
    [[nodiscard]] Result<std::vector<FunctionKind>> kinds() const {
        if (layers.size() > 32) return Error{"too many layers", std::to_string(layers.size()), "32 at most"};
        std::vector<FunctionKind> result(format::function_count);
        for (std::uint16_t id = 1; id < format::function_count; ++id) {
            const format::FunctionInfo& info = format::functions[id];
            const std::size_t layer = position(layers, info.layer);
            const std::size_t op = position(ops, info.op);
            if (layer == layers.size()) return Error{"unknown layer", info.layer, std::string("of ") + info.name};
            if (op == ops.size()) return Error{"unknown operation", info.op, std::string("of ") + info.name};
            result[id] = FunctionKind{static_cast<std::uint8_t>(layer),
                                      static_cast<std::uint8_t>(op),
                                      info.collective,
                                      info.late,
                                      info.begins,
                                      info.completes};
        }
        return result;
    }
};

}  // namespace ioweir::analysis
