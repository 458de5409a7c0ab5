// The forms of a call: what the adapter sees of H5Dwrite_async and H5Dwrite_multi, and what the library is given.
#include "adapters/hdf5/call.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "adapters/hdf5/move.hpp"

namespace ioweir::hdf5 {
namespace {

constexpr Word answer = 77;
std::vector<Word> given;      // to the library by the last call
std::vector<Id> memory_then;  // of several datasets: as the arrays were during that call
std::vector<Word> buffers_then;

Word invoke(void* function, const Word* arguments, int count) {
    EXPECT_EQ(function, &given);
    given.assign(arguments, arguments + count);
    return answer;
}

/// With the arrays of H5Dwrite_multi, whose first is argument `first`.
template <int first>
Word invoke_several(void* function, const Word* arguments, int count) {
    const auto datasets = static_cast<std::size_t>(arguments[first]);
    const auto* memory = reinterpret_cast<const Id*>(arguments[first + 3]);
    const auto* buffers = reinterpret_cast<const Word*>(arguments[first + 6]);
    memory_then.assign(memory, memory + datasets);
    buffers_then.assign(buffers, buffers + datasets);
    return invoke(function, arguments, count);
}

adapters::Call made(const char* symbol, const std::vector<Word>& arguments,
                    Word (*by)(void*, const Word*, int) = invoke) {
    return {symbol, &given, 1, arguments.data(), static_cast<int>(arguments.size()), by};
}

template <typename Type>
Word place(const std::vector<Type>& values) {
    return reinterpret_cast<Word>(values.data());
}

TEST(Call, IsItselfWhereItIsNotAsynchronous) {
    const std::vector<Word> arguments{1, 2, 3};
    const adapters::Call program = made("H5Fflush", arguments);
    const Call call(program);
    EXPECT_EQ(call.function, "H5Fflush");
    EXPECT_EQ(call.count, 3);
    const std::vector<Word> others{4, 5, 6};
    EXPECT_EQ(call.go_on(others.data()), answer);
    EXPECT_EQ(given, others);
}

TEST(Call, KeepsWhatAnAsynchronousFormHasAround) {
    const std::vector<Word> arguments{91, 92, 93, 1, 2, 94};
    const adapters::Call program = made("H5Fflush_async", arguments);
    const Call call(program);
    EXPECT_EQ(call.function, "H5Fflush");
    EXPECT_EQ(call.count, 2);
    EXPECT_EQ(argument<Id>(call, 0), 1);
    const std::vector<Word> others{4, 5};
    EXPECT_EQ(call.go_on(others.data()), answer);
    EXPECT_EQ(given, (std::vector<Word>{91, 92, 93, 4, 5, 94}));
}

TEST(Move, OfOneDatasetGoesOnWithWhatWasChanged) {
    const std::vector<Word> arguments{91, 92, 93, 1, 2, 3, 4, 5, 6, 94};
    const adapters::Call program = made("H5Dread_async", arguments);
    const Call call(program);
    Move move(call);
    EXPECT_FALSE(move.writes);
    EXPECT_FALSE(move.several);
    ASSERT_EQ(move.parts.size(), 1U);
    EXPECT_EQ(move.parts[0].dataset, 1);
    EXPECT_EQ(move.parts[0].type, 2);
    EXPECT_EQ(move.parts[0].memory, 3);
    EXPECT_EQ(move.parts[0].space, 4);
    EXPECT_EQ(move.list, 5);
    EXPECT_EQ(move.parts[0].buffer, 6U);
    EXPECT_EQ(move.go_on(), answer);
    EXPECT_EQ(given, arguments);
    move.parts[0].memory = 33;
    move.parts[0].buffer = 66;
    move.list = 55;
    EXPECT_EQ(move.go_on(), answer);
    EXPECT_EQ(given, (std::vector<Word>{91, 92, 93, 1, 2, 33, 4, 55, 66, 94}));
}

TEST(Move, OfSeveralDatasetsGoesOnWithWhatWasChanged) {
    const std::vector<Id> datasets{10, 11};
    const std::vector<Id> types{20, 21};
    const std::vector<Id> memory{30, 31};
    const std::vector<Id> spaces{40, 41};
    const std::vector<Word> buffers{60, 61};
    const std::vector<Word> own{2, place(datasets), place(types), place(memory), place(spaces), 50, place(buffers)};
    const adapters::Call program = made("H5Dwrite_multi", own, invoke_several<0>);
    const Call call(program);
    Move move(call);
    EXPECT_TRUE(move.writes);
    EXPECT_TRUE(move.several);
    ASSERT_EQ(move.parts.size(), 2U);
    EXPECT_EQ(move.parts[1].dataset, 11);
    EXPECT_EQ(move.parts[1].type, 21);
    EXPECT_EQ(move.parts[1].space, 41);
    EXPECT_EQ(move.list, 50);
    move.parts[1].memory = 331;
    move.parts[0].buffer = 660;
    move.list = 55;
    EXPECT_EQ(move.go_on(), answer);
    EXPECT_EQ(memory_then, (std::vector<Id>{30, 331}));
    EXPECT_EQ(buffers_then, (std::vector<Word>{660, 61}));
    ASSERT_EQ(given.size(), 7U);
    EXPECT_EQ(given[5], 55U);
    for (const std::size_t same : {0U, 1U, 2U, 4U}) EXPECT_EQ(given[same], own[same]);

    std::vector<Word> later{91, 92, 93};
    later.insert(later.end(), own.begin(), own.end());
    later.push_back(94);
    const adapters::Call asynchronous = made("H5Dwrite_multi_async", later, invoke_several<3>);
    const Call its_call(asynchronous);
    const Move its_move(its_call);
    EXPECT_TRUE(its_move.writes);
    EXPECT_EQ(its_move.go_on(), answer);
    EXPECT_EQ(memory_then, memory);
    EXPECT_EQ(buffers_then, buffers);
    EXPECT_EQ(given.back(), 94U);
}

TEST(Move, WithoutAnArrayIsForTheLibraryToRefuse) {
    const std::vector<Id> ids{10};
    const std::vector<Word> arguments{1, place(ids), place(ids), 0, place(ids), 50, place(ids)};
    const adapters::Call program = made("H5Dread_multi", arguments);
    const Call call(program);
    const Move move(call);
    EXPECT_TRUE(move.parts.empty());
    EXPECT_EQ(move.go_on(), answer);
    EXPECT_EQ(given, arguments);
}

}  // namespace
}  // namespace ioweir::hdf5
