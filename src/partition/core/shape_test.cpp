#include "partition/core/shape.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace ioweir::partition {
namespace {

std::vector<std::int64_t> some_parts() {
    std::vector<std::int64_t> parts(*rc::gen::inRange<std::size_t>(1, 40));
    for (auto& count : parts) count = *rc::gen::inRange<std::int64_t>(0, 4);
    return parts;
}

RC_GTEST_PROP(Shape, FilesHoldAllPartsOnceInTheirOrder, ()) {
    const auto parts = some_parts();
    const auto files = *rc::gen::inRange<std::int64_t>(1, std::ssize(parts) + 1);
    const auto made = Shape::make(parts, files);
    RC_ASSERT(made.ok());
    const Shape& shape = made.value();
    std::int64_t rank = 0, part = 0, least = shape.ranks(), most = 0;
    for (std::int64_t file = 0; file < files; ++file) {
        const Span ranks = shape.ranks_of_file(file);
        RC_ASSERT(ranks.first == rank);
        RC_ASSERT(ranks.count > 0);
        RC_ASSERT(shape.parts_of_file(file).first == part);
        least = std::min(least, ranks.count);
        most = std::max(most, ranks.count);
        for (; rank < ranks.end(); ++rank) {
            RC_ASSERT(shape.file_of_rank(rank) == file);
            RC_ASSERT(shape.parts_of_rank(rank) == (Span{part, parts[static_cast<std::size_t>(rank)]}));
            part += parts[static_cast<std::size_t>(rank)];
        }
        RC_ASSERT(shape.parts_of_file(file).end() == part);
    }
    RC_ASSERT(rank == shape.ranks());
    RC_ASSERT(part == shape.parts());
    RC_ASSERT(most - least <= 1);
}

/// As PHASTA's library has it, where it has any: file floor(r / (P / N)) of rank r.
RC_GTEST_PROP(Shape, RegularOnesAreThoseOfPhasta, ()) {
    const auto files = *rc::gen::inRange<std::int64_t>(1, 9), ranks_each = *rc::gen::inRange<std::int64_t>(1, 9);
    const auto parts_each = *rc::gen::inRange<std::int64_t>(1, 5);
    const std::vector<std::int64_t> parts(static_cast<std::size_t>(files * ranks_each), parts_each);
    const Shape shape = Shape::make(parts, files).value();
    for (std::int64_t rank = 0; rank < shape.ranks(); ++rank) RC_ASSERT(shape.file_of_rank(rank) == rank / ranks_each);
    const std::int64_t parts_of_file = parts_each * ranks_each;
    for (std::int64_t file = 0; file < files; ++file)
        RC_ASSERT(shape.parts_of_file(file) == (Span{file * parts_of_file, parts_of_file}));
}

RC_GTEST_PROP(LevelShare, OwnersHaveWhatTheirSharesSay, ()) {
    const auto owners = *rc::gen::inRange<std::int64_t>(1, 50), total = *rc::gen::inRange<std::int64_t>(0, 500);
    std::int64_t thing = 0;
    for (std::int64_t owner = 0; owner < owners; ++owner) {
        const Span share = level_share(total, owners, owner);
        RC_ASSERT(share.first == thing);
        for (; thing < share.end(); ++thing) RC_ASSERT(level_owner(total, owners, thing) == owner);
    }
    RC_ASSERT(thing == total);
}

TEST(Shape, WhatCannotBeIsSaid) {
    EXPECT_EQ(Shape::make({1, 1, 1}, 4).error().message(),
              "a number of files that cannot be: 4; from 1 to the number of ranks, 3");
    EXPECT_EQ(Shape::make({1, 1}, 0).error().value, "0");
    EXPECT_EQ(Shape::make({1, -2}, 1).error().message(), "a number of parts that cannot be: -2 on rank 1; 0 or more");
    EXPECT_FALSE(Shape::make({INT64_MAX, 1}, 1).ok());
}

}  // namespace
}  // namespace ioweir::partition
