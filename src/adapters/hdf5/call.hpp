// A call of HDF5 as the adapter sees it, whichever form the program uses: H5Dwrite_async(app_file, app_func, app_line,
// ..., es_id) is H5Dwrite(...). With a connector that works synchronously, as HDF5's own does, such a call is done when
// it returns, whatever event set it is given; files of others are left alone (adapter.cpp).
// What does not live here: what a call means.
#pragma once

#include <string_view>

#include "adapters/call/call.hpp"

namespace ioweir::hdf5 {

using adapters::argument;
using adapters::Word;
using adapters::word_of;

/// The arguments and their count are those of the form without "_async". Lives as long as the program's call.
struct Call : adapters::Call {
    std::string_view function;  ///< "H5Dwrite", without "_async"
    const adapters::Call& whole;

    explicit Call(const adapters::Call& programs);
    /// Has the library carry it out with these arguments, `count` of them, in the form that the program uses.
    [[nodiscard]] Word go_on(const Word* own) const;
};

}  // namespace ioweir::hdf5
