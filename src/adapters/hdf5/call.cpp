#include "adapters/hdf5/call.hpp"

#include <algorithm>
#include <array>

namespace ioweir::hdf5 {
namespace {

constexpr std::string_view ending = "_async";
constexpr int parameters_before = 3;  // app_file, app_func, app_line
constexpr int parameters_behind = 1;  // es_id

}  // namespace

Call::Call(const adapters::Call& programs) : adapters::Call(programs), function(programs.symbol), whole(programs) {
    if (function.size() < ending.size() || function.substr(function.size() - ending.size()) != ending ||
        count < parameters_before + parameters_behind)
        return;
    function.remove_suffix(ending.size());
    arguments += parameters_before;
    count -= parameters_before + parameters_behind;
}

Word Call::go_on(const Word* own) const {
    if (count == whole.count) return invoke(real, own, count);
    std::array<Word, 16> all{};
    std::copy_n(whole.arguments, whole.count, all.begin());
    std::copy_n(own, count, all.begin() + parameters_before);
    return invoke(real, all.data(), whole.count);
}

}  // namespace ioweir::hdf5
