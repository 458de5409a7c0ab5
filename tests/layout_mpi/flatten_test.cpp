// flatten() and PieceCursor against type maps written out byte by byte, and against MPI_Pack, for random datatypes.
#include "layout/mpi/flatten.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "layout/core/piece_cursor.hpp"
#include "mpi_cases/naive_type.hpp"

namespace ioweir::layout {
namespace {

using cases::NaiveType;
using cases::Random;

/// What a cursor delivers, byte by byte; also checks that pieces are maximal.
std::vector<std::int64_t> walk(PieceCursor cursor) {
    std::vector<std::int64_t> bytes;
    Extent piece;
    std::int64_t previous_end = 0;
    while (cursor.next(piece)) {
        EXPECT_GT(piece.length, 0);
        if (!bytes.empty()) {
            EXPECT_NE(piece.offset, previous_end) << "neighbours were not joined";
        }
        previous_end = piece.end();
        for (std::int64_t i = 0; i < piece.length; ++i) bytes.push_back(piece.offset + i);
    }
    EXPECT_EQ(cursor.left(), 0);
    return bytes;
}

std::vector<std::int64_t> expected_bytes(const NaiveType& type, std::int64_t origin, std::int64_t first,
                                         std::int64_t count) {
    std::vector<std::int64_t> bytes;
    for (std::int64_t i = first; i < first + count; ++i) bytes.push_back(origin + type.displacement(i));
    return bytes;
}

bool goes_up(const NaiveType& type) {
    for (std::int64_t i = 0; i < 3 * type.size(); ++i) {
        if (type.displacement(i) < 0 || (i > 0 && type.displacement(i) <= type.displacement(i - 1))) return false;
    }
    return true;
}

/// The whole of `count` instances, and random parts of them.
void check_type(const NaiveType& type, Random& random) {
    SCOPED_TRACE(type.text);
    const auto flat = flatten(type.type);
    ASSERT_TRUE(flat.ok()) << flat.error().message();
    const FlatType& found = *flat.value();
    EXPECT_EQ(found.size, type.size());
    EXPECT_EQ(found.extent, type.extent);
    EXPECT_EQ(found.lower_bound, type.lower);
    if (found.ascending && type.size() > 0) {
        EXPECT_TRUE(goes_up(type));
    }
    const std::int64_t total = 3 * type.size();
    EXPECT_EQ(walk({found, 1000, 0, total}), expected_bytes(type, 1000, 0, total));
    if (total == 0) return;
    for (int i = 0; i < 4; ++i) {
        const std::int64_t first = random.between(0, total - 1);
        const std::int64_t count = random.between(0, total - first);
        ASSERT_EQ(walk({found, -77, first, count}), expected_bytes(type, -77, first, count)) << first << " + " << count;
    }
    EXPECT_EQ(flatten(type.type).value(), flat.value()) << "the second answer must come from the cache";
}

TEST(Flatten, RandomTypesAgreeWithTheirTypeMaps) {
    std::int64_t with_data = 0, ascending = 0;
    for (std::uint64_t i = 0; i < 4000; ++i) {
        SCOPED_TRACE("type " + std::to_string(i));
        Random random(20, i);
        const NaiveType type = cases::random_type(random, static_cast<int>(random.between(1, 4)), 3000,
                                                  i % 2 == 0 ? cases::Flavour::any : cases::Flavour::plain);
        if (!type.owned) continue;
        check_type(type, random);
        if (testing::Test::HasFailure()) return;
        with_data += type.size() > 0 ? 1 : 0;
        ascending += type.size() > 0 && flatten(type.type).value()->ascending ? 1 : 0;
    }
    EXPECT_GT(with_data, 2000) << "the generator makes too many empty types to prove anything";
    EXPECT_GT(ascending, 500);
}

TEST(Flatten, RandomTypesAgreeWithPack) {
    for (std::uint64_t i = 0; i < 1000; ++i) {
        SCOPED_TRACE("type " + std::to_string(i));
        Random random(21, i);
        const NaiveType type = cases::random_memory_type(random, 2000, 2);
        const auto flat = flatten(type.type);
        ASSERT_TRUE(flat.ok()) << flat.error().message();
        const FlatType& found = *flat.value();
        const int count = 2;
        std::int64_t low = 0, high = 0;
        for (std::int64_t b = 0; b < count * type.size(); ++b) {
            low = std::min(low, type.displacement(b));
            high = std::max(high, type.displacement(b) + 1);
        }
        std::vector<unsigned char> memory(static_cast<std::size_t>(high - low) + 1);
        for (std::size_t b = 0; b < memory.size(); ++b) memory[b] = static_cast<unsigned char>(Random::mix(b) >> 7);
        std::vector<unsigned char> packed(static_cast<std::size_t>(count * type.size()) + 1), ours;
        SCOPED_TRACE(type.text);
        int position = 0;
        MPI_Pack(memory.data() - low, count, type.type, packed.data(), static_cast<int>(packed.size()), &position,
                 MPI_COMM_SELF);
        packed.resize(static_cast<std::size_t>(position));
        PieceCursor cursor(found, 0, 0, count * found.size);
        for (Extent piece; cursor.next(piece);) {
            const unsigned char* from = memory.data() - low + piece.offset;
            ours.insert(ours.end(), from, from + piece.length);
        }
        ASSERT_EQ(ours, packed);
    }
}

TEST(Flatten, RegularTypesTakeOneBlock) {
    const NaiveType four =
        cases::subarray(cases::predefined(MPI_DOUBLE), {6, 7, 8, 9}, {2, 3, 4, 5}, {1, 1, 1, 1}, MPI_ORDER_C);
    const auto flat = flatten(four.type).value();
    EXPECT_EQ(flat->blocks.size(), 1u);
    EXPECT_EQ(flat->loops.size(), 3u);
    EXPECT_EQ(flat->runs, 2 * 3 * 4);
    EXPECT_TRUE(flat->ascending);
    EXPECT_FALSE(flat->contiguous);
    // Whole planes are one run: two faster dimensions complete.
    const NaiveType planes = cases::subarray(cases::predefined(MPI_INT), {5, 4, 3}, {2, 4, 3}, {1, 0, 0}, MPI_ORDER_C);
    EXPECT_EQ(flatten(planes.type).value()->runs, 1);
    const NaiveType rows = cases::contiguous(cases::predefined(MPI_DOUBLE), 100);
    EXPECT_TRUE(flatten(rows.type).value()->contiguous);
    std::vector<int> at;
    for (int i = 0; i < 1000; ++i) at.push_back(3 * i);
    const NaiveType regular = cases::indexed_block(cases::predefined(MPI_INT), 1, at);
    EXPECT_EQ(flatten(regular.type).value()->blocks.size(), 1u)
        << "an arithmetic progression of displacements is a loop";
}

TEST(Flatten, ViewsAreKnownToGoUpOrNot) {
    const NaiveType integer = cases::predefined(MPI_INT);
    EXPECT_TRUE(flatten(cases::vector(integer, 3, 1, 2).type).value()->ascending);
    EXPECT_FALSE(flatten(cases::vector(integer, 3, 1, -2).type).value()->ascending);
    EXPECT_FALSE(flatten(cases::vector(integer, 3, 2, 1).type).value()->ascending) << "overlapping";
    EXPECT_FALSE(flatten(cases::indexed(integer, {1, 1}, {4, 0}).type).value()->ascending);
    EXPECT_FALSE(flatten(cases::resized(cases::vector(integer, 3, 1, 2), 0, 8).type).value()->ascending)
        << "instances overlap";
    EXPECT_TRUE(flatten(cases::resized(cases::vector(integer, 3, 1, 2), 0, 8).type).value()->ascending_once);
    EXPECT_FALSE(flatten(cases::vector(integer, 3, 1, -2).type).value()->ascending_once);
    EXPECT_FALSE(flatten(cases::indexed(integer, {1, 1}, {4, 0}).type).value()->ascending_once);
    EXPECT_TRUE(flatten(cases::resized(integer, 0, 8).type).value()->ascending);
}

TEST(Flatten, BillionsOfElementsNeedNoMemoryAndNoTime) {
    // 2^31 - 1 blocks of 4 KiB, 8 KiB apart: more than 8 TiB of data.
    MPI_Datatype block, huge;
    MPI_Type_contiguous(512, MPI_DOUBLE, &block);
    MPI_Type_create_hvector(2147483647, 1, 8192, block, &huge);
    const auto flat = flatten(huge);
    ASSERT_TRUE(flat.ok()) << flat.error().message();
    EXPECT_EQ(flat.value()->size, 4096LL * 2147483647);
    EXPECT_EQ(flat.value()->blocks.size(), 1u);
    PieceCursor late(*flat.value(), 0, 4096LL * 2000000000 + 96, 5000);
    Extent piece;
    ASSERT_TRUE(late.next(piece));
    EXPECT_EQ(piece, (Extent{8192LL * 2000000000 + 96, 4000}));
    ASSERT_TRUE(late.next(piece));
    EXPECT_EQ(piece, (Extent{8192LL * 2000000001, 1000}));
    EXPECT_FALSE(late.next(piece));
    MPI_Type_free(&huge);
    MPI_Type_free(&block);
}

TEST(Flatten, TypesOfTwoOfTheTypeBeforeTakeNoTime) {
    // 60 levels: 2^60 leaves of no byte each, and one of 4 bytes beside them. Open MPI does not tell that they are the same.
    MPI_Datatype type;
    MPI_Type_contiguous(0, MPI_INT, &type);
    for (int level = 0; level < 60; ++level) {
        const int lengths[2] = {1, 1};
        const MPI_Aint at[2] = {0, 8};
        const MPI_Datatype both[2] = {type, type};
        MPI_Datatype next;
        MPI_Type_create_struct(2, lengths, at, both, &next);
        MPI_Type_free(&type);
        type = next;
    }
    const int lengths[2] = {1, 1};
    const MPI_Aint at[2] = {0, 16};
    const MPI_Datatype both[2] = {type, MPI_INT};
    MPI_Datatype last;
    MPI_Type_create_struct(2, lengths, at, both, &last);
    for (int call = 0; call < 1000; ++call) {  // whatever was found is kept
        const auto flat = flatten(last);
        if (!flat.ok()) {
            ASSERT_EQ(flat.error().message(),
                      "a datatype that is made of very many others is not handled: more than 131072");
            continue;
        }
        ASSERT_EQ(flat.value()->size, 4);
        ASSERT_EQ(walk({*flat.value(), 0, 0, 4}), (std::vector<std::int64_t>{16, 17, 18, 19}));
    }
#ifdef MPICH_VERSION
    EXPECT_TRUE(flatten(last).ok());
#endif
    MPI_Type_free(&last);
    MPI_Type_free(&type);
}

TEST(Flatten, HopelesslyIrregularTypesAreAnError) {
    // Two runs of different lengths that cannot be one loop, more often than a type may have blocks.
    const NaiveType pair = cases::indexed(cases::predefined(MPI_BYTE), {1, 2}, {0, 5});
    MPI_Datatype many;
    MPI_Type_create_hvector(static_cast<int>(FlatTypeBuilder::max_blocks), 1, 16, pair.type, &many);
    EXPECT_FALSE(flatten(many).ok());
    MPI_Type_free(&many);
}

TEST(Flatten, AReusedHandleIsNotTakenForTheOldType) {
    for (int i = 1; i < 50; ++i) {  // MPICH gives the handle of a freed type to the next one
        const NaiveType type = cases::contiguous(cases::predefined(MPI_INT), i);
        EXPECT_EQ(flatten(type.type).value()->size, 4 * i);
        const NaiveType copy = cases::duplicate(type);
        EXPECT_EQ(flatten(copy.type).value()->size, 4 * i);
    }
}

TEST(Flatten, ATypeOutlivesItsDatatype) {
    std::shared_ptr<const FlatType> kept;
    {
        const NaiveType type = cases::vector(cases::predefined(MPI_INT), 3, 1, 2);
        kept = flatten(type.type).value();
    }
    EXPECT_EQ(kept.use_count(), 1) << "the datatype's delete callback must drop the cached one";
    EXPECT_EQ(kept->size, 12);
}

TEST(Flatten, FreeingTheKeyLeavesNothingBroken) {
    const NaiveType type = cases::vector(cases::predefined(MPI_INT), 3, 1, 2);
    const auto before = flatten(type.type).value();
    release_flatten_cache();
    EXPECT_EQ(flatten(type.type).value()->size, before->size);
    release_flatten_cache();
}

TEST(FileView, DisplacementOffsetAndSpan) {
    const NaiveType column = cases::subarray(cases::predefined(MPI_INT), {4, 5}, {4, 2}, {0, 1}, MPI_ORDER_C);
    const FileView view{100, 4, flatten(column.type).value()};
    // Etype 7 is the last of the first array's four pairs; the second array begins 80 bytes after the first.
    EXPECT_EQ(walk(view.pieces(7 * view.etype_bytes, 12)),
              (std::vector<std::int64_t>{168, 169, 170, 171, 184, 185, 186, 187, 188, 189, 190, 191}));
}

#if MPI_VERSION >= 4
TEST(Flatten, TypesMadeWithLargeCounts) {
    const MPI_Count lengths[2] = {2, 1}, at[2] = {0, 40}, sizes[2] = {4, 6}, subsizes[2] = {2, 3}, starts[2] = {1, 2};
    const MPI_Datatype members[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Datatype made[9];
    MPI_Type_contiguous_c(5, MPI_INT, &made[0]);
    MPI_Type_vector_c(3, 2, 4, MPI_INT, &made[1]);
    MPI_Type_create_hvector_c(3, 2, 33, MPI_INT, &made[2]);
    MPI_Type_indexed_c(2, lengths, at, MPI_INT, &made[3]);
    MPI_Type_create_hindexed_c(2, lengths, at, MPI_INT, &made[4]);
    MPI_Type_create_indexed_block_c(2, 2, at, MPI_INT, &made[5]);
    MPI_Type_create_hindexed_block_c(2, 2, at, MPI_INT, &made[6]);
    MPI_Type_create_struct_c(2, lengths, at, members, &made[7]);
    MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &made[8]);
    const NaiveType integer = cases::predefined(MPI_INT);
    std::vector<NaiveType> both;
    both.push_back(cases::predefined(MPI_INT));
    both.push_back(cases::predefined(MPI_DOUBLE));
    std::vector<NaiveType> meant;
    meant.push_back(cases::contiguous(integer, 5));
    meant.push_back(cases::vector(integer, 3, 2, 4));
    meant.push_back(cases::hvector(integer, 3, 2, 33));
    meant.push_back(cases::indexed(integer, {2, 1}, {0, 40}));
    meant.push_back(cases::hindexed(integer, {2, 1}, {0, 40}));
    meant.push_back(cases::indexed_block(integer, 2, {0, 40}));
    meant.push_back(cases::hindexed_block(integer, 2, {0, 40}));
    meant.push_back(cases::structure(both, {2, 1}, {0, 40}));
    meant.push_back(cases::subarray(integer, {4, 6}, {2, 3}, {1, 2}, MPI_ORDER_FORTRAN));
    for (std::size_t i = 0; i < meant.size(); ++i) {
        SCOPED_TRACE(i);
        const auto flat = flatten(made[i]);
        ASSERT_TRUE(flat.ok()) << flat.error().message();
        EXPECT_EQ(walk({*flat.value(), 0, 0, 2 * meant[i].size()}),
                  expected_bytes(meant[i], 0, 0, 2 * meant[i].size()));
        MPI_Type_free(&made[i]);
    }
}
#endif

}  // namespace
}  // namespace ioweir::layout
