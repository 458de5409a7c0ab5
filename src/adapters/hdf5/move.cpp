#include "adapters/hdf5/move.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace ioweir::hdf5 {
namespace {

// Places of the arguments. H5Dwrite, H5Dread: one of each.
constexpr int dataset_at = 0, type_at = 1, memory_at = 2, space_at = 3, list_at = 4, buffer_at = 5;
constexpr int arguments_of_one = 6;
// H5Dwrite_multi, H5Dread_multi: arrays of them.
constexpr int count_at = 0, datasets_at = 1, types_at = 2, memories_at = 3, spaces_at = 4, several_list_at = 5,
              buffers_at = 6;
constexpr int arguments_of_several = 7;

}  // namespace

Move::Move(const Call& call)
    : writes(call.function == "H5Dwrite" || call.function == "H5Dwrite_multi"),
      several(call.count == arguments_of_several),
      call_(call) {
    if (call.count == arguments_of_one) {
        parts.push_back({argument<Id>(call, dataset_at), argument<Id>(call, type_at), argument<Id>(call, memory_at),
                         argument<Id>(call, space_at), argument<Word>(call, buffer_at)});
        list = argument<Id>(call, list_at);
        return;
    }
    if (!several) return;
    const auto* datasets = argument<const Id*>(call, datasets_at);
    const auto* types = argument<const Id*>(call, types_at);
    const auto* memories = argument<const Id*>(call, memories_at);
    const auto* spaces = argument<const Id*>(call, spaces_at);
    const auto* buffers = argument<const Word*>(call, buffers_at);
    list = argument<Id>(call, several_list_at);
    if (datasets == nullptr || types == nullptr || memories == nullptr || spaces == nullptr || buffers == nullptr)
        return;
    const auto count = argument<std::size_t>(call, count_at);
    parts.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
        parts.push_back({datasets[i], types[i], memories[i], spaces[i], buffers[i]});
}

Word Move::go_on() const {
    if (parts.empty()) return call_.go_on(call_.arguments);
    return several ? go_on_with_several() : go_on_with_one();
}

Word Move::go_on_with_one() const {
    const Part& part = parts.front();
    const std::array<Word, arguments_of_one> arguments{word_of(part.dataset), word_of(part.type), word_of(part.memory),
                                                       word_of(part.space),   word_of(list),      part.buffer};
    return call_.go_on(arguments.data());
}

Word Move::go_on_with_several() const {
    std::vector<Id> memories;
    std::vector<Word> buffers;
    for (const Part& part : parts) {
        memories.push_back(part.memory);
        buffers.push_back(part.buffer);
    }
    std::array<Word, arguments_of_several> arguments{};
    std::copy_n(call_.arguments, arguments_of_several, arguments.begin());
    arguments[memories_at] = word_of(memories.data());
    arguments[several_list_at] = word_of(list);
    arguments[buffers_at] = word_of(buffers.data());
    return call_.go_on(arguments.data());
}

}  // namespace ioweir::hdf5
