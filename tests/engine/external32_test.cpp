// Data representations in files of several parts: external32 leaves the bytes that the MPI standard says, which are those of the MPI library
// in an ordinary file.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "modes_world.hpp"

namespace ioweir {
namespace {

constexpr char external32[] = "external32", native[] = "native", internal[] = "internal";

/// Big-endian, the most significant byte first (MPI 4.0, section 14.5.2).
template <typename T>
std::vector<unsigned char> big_endian(const std::vector<T>& values) {
    std::vector<unsigned char> bytes;
    for (const T& value : values) {
        unsigned char one[sizeof(T)];
        std::memcpy(one, &value, sizeof one);
        if (std::endian::native == std::endian::little) std::reverse(std::begin(one), std::end(one));
        bytes.insert(bytes.end(), std::begin(one), std::end(one));
    }
    return bytes;
}

class External32Test : public ModesTest {
protected:
    static std::string path_of(const char* way) { return world->path((std::string("file.") + way).c_str()); }
    /// The file's own bytes from an offset on.
    std::vector<unsigned char> raw(MPI_File file, MPI_Offset from, std::size_t bytes) const {
        EXPECT_EQ(calls_.File_set_view(file, 0, MPI_BYTE, MPI_BYTE, native, MPI_INFO_NULL), MPI_SUCCESS);
        std::vector<unsigned char> there(bytes, 0xEE);
        MPI_Status status;
        EXPECT_EQ(calls_.File_read_at(file, from, there.data(), static_cast<int>(bytes), MPI_BYTE, &status),
                  MPI_SUCCESS);
        there.resize(static_cast<std::size_t>(elements(status, MPI_BYTE)));
        return there;
    }
};

TEST_F(External32Test, LeavesTheBytesOfAnOrdinaryFile) {
    expect_as_in_one_file([](const mpi::FileCalls& io, MPI_File file, Seen& seen) {
        const int rank = world->rank;
        const MPI_Offset mine = 400 * rank;
        MPI_Status status;
        // MPI libraries leave rubbish in holes that nobody has written.
        const std::vector<char> nothing(400, 0);
        EXPECT_EQ(io.File_write_at(file, mine, nothing.data(), 400, MPI_BYTE, &status), MPI_SUCCESS);
        settle(io, file);
        // Ints, in the file with holes between them, in memory too.
        MPI_Datatype file_type = MPI_DATATYPE_NULL, memory_type = MPI_DATATYPE_NULL;
        PMPI_Type_vector(3, 2, 4, MPI_INT, &file_type);
        PMPI_Type_commit(&file_type);
        PMPI_Type_vector(6, 1, 2, MPI_INT, &memory_type);
        PMPI_Type_commit(&memory_type);
        EXPECT_EQ(io.File_set_view(file, mine, MPI_INT, file_type, external32, MPI_INFO_NULL), MPI_SUCCESS);
        std::vector<int> ints;
        for (int i = 0; i < 12; ++i) ints.push_back(0x01020304 + 0x10000 * rank + i);
        EXPECT_EQ(io.File_write_at_all(file, 0, ints.data(), 1, memory_type, &status), MPI_SUCCESS);
        seen.add("wrote", elements(status, MPI_INT));
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(io.File_write(file, ints.data(), 1, MPI_INT, &status), MPI_SUCCESS);  // over the first one again
        // Doubles and shorts behind them, by the pointers.
        EXPECT_EQ(io.File_set_view(file, mine + 120, MPI_DOUBLE, MPI_DOUBLE, external32, MPI_INFO_NULL), MPI_SUCCESS);
        const std::vector<double> doubles{1.5, -2.25 * rank, 1e300};
        EXPECT_EQ(io.File_write_all(file, doubles.data(), 3, MPI_DOUBLE, &status), MPI_SUCCESS);
        seen.add("wrote", elements(status, MPI_DOUBLE));
        EXPECT_EQ(io.File_set_view(file, mine + 160, MPI_SHORT, MPI_SHORT, external32, MPI_INFO_NULL), MPI_SUCCESS);
        const std::vector<short> shorts{static_cast<short>(0x0102 + rank), -3};
        EXPECT_EQ(io.File_write(file, shorts.data(), 2, MPI_SHORT, &status), MPI_SUCCESS);
        settle(io, file);
        // Read back as numbers.
        EXPECT_EQ(io.File_set_view(file, mine, MPI_INT, file_type, external32, MPI_INFO_NULL), MPI_SUCCESS);
        std::vector<int> back(12, -1);
        EXPECT_EQ(io.File_read_at_all(file, 0, back.data(), 1, memory_type, &status), MPI_SUCCESS);
        seen.add("ints", back);
        seen.add("so many", elements(status, MPI_INT));
        EXPECT_EQ(io.File_set_view(file, mine + 120, MPI_DOUBLE, MPI_DOUBLE, external32, MPI_INFO_NULL), MPI_SUCCESS);
        std::vector<double> doubles_back(2, -1);
        EXPECT_EQ(io.File_read_at(file, 1, doubles_back.data(), 2, MPI_DOUBLE, &status), MPI_SUCCESS);
        seen.add("doubles", doubles_back);
        PMPI_Type_free(&file_type);
        PMPI_Type_free(&memory_type);
    });
}

TEST_F(External32Test, LeavesTheBytesThatTheStandardSays) {
    for (const char* const way : ways) {
        SCOPED_TRACE(way);
        const std::string path = path_of(way);
        MPI_File file = open(world->engine, path);
        const int rank = world->rank;
        EXPECT_EQ(calls_.File_set_view(file, 64 * rank, MPI_BYTE, MPI_BYTE, external32, MPI_INFO_NULL), MPI_SUCCESS);
        const std::vector<int> ints{1, -2, 0x01020304, rank};
        const std::vector<double> doubles{0.1, 1.0 / (rank + 1)};
        const std::vector<short> shorts{7, static_cast<short>(-rank)};
        MPI_Status status;
        EXPECT_EQ(calls_.File_write_at(file, 0, ints.data(), 4, MPI_INT, &status), MPI_SUCCESS);
        EXPECT_EQ(elements(status, MPI_INT), 4);
        EXPECT_EQ(calls_.File_write_at(file, 16, doubles.data(), 2, MPI_DOUBLE, &status), MPI_SUCCESS);
        // ROMIO does not convert what non-blocking calls move.
        MPI_Request request = MPI_REQUEST_NULL;
        EXPECT_EQ(calls_.File_iwrite_at(file, 32, shorts.data(), 2, MPI_SHORT, &request), MPI_SUCCESS);
        EXPECT_EQ(PMPI_Wait(&request, &status), MPI_SUCCESS);
        EXPECT_EQ(elements(status, MPI_SHORT), 2);
        EXPECT_EQ(calls_.File_write_at(file, 36, "abcd", 4, MPI_CHAR, &status), MPI_SUCCESS);
        settle(calls_, file);
        std::vector<unsigned char> expected = big_endian(ints);
        for (const auto& part : {big_endian(doubles), big_endian(shorts), {'a', 'b', 'c', 'd'}})
            expected.insert(expected.end(), part.begin(), part.end());
        EXPECT_EQ(raw(file, 64 * rank, 40), expected);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        remove_container(path);
    }
}

/// A long has 8 bytes in memory and 4 in external32 (MPI 4.0, table 14.2). In the file there is room for 8, as in ROMIO.
TEST_F(External32Test, NumbersOfAnotherSize) {
    for (const char* const way : ways) {
        SCOPED_TRACE(way);
        const std::string path = path_of(way);
        MPI_File file = open(world->engine, path);
        EXPECT_EQ(calls_.File_set_view(file, 8, MPI_LONG, MPI_LONG, external32, MPI_INFO_NULL), MPI_SUCCESS);
        const std::vector<long> values{5 + world->rank, -7};
        MPI_Status status;
        EXPECT_EQ(calls_.File_write_at_all(file, 2 * world->rank, values.data(), 2, MPI_LONG, &status), MPI_SUCCESS);
        EXPECT_EQ(elements(status, MPI_LONG), 2);
        settle(calls_, file);
        std::vector<long> back(4, 1L << 40);
        EXPECT_EQ(calls_.File_read_at(file, 2 * last_, back.data(), 4, MPI_LONG, &status), MPI_SUCCESS);
        EXPECT_EQ(elements(status, MPI_LONG), 2) << "there are no more";
        EXPECT_EQ(back, (std::vector<long>{5 + last_, -7, 1L << 40, 1L << 40}));
        std::vector<unsigned char> expected = big_endian(std::vector<std::int32_t>{5 + world->rank, -7});
        expected.resize(16, 0);
        EXPECT_EQ(raw(file, 8 + 16 * world->rank, 16), expected);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        remove_container(path);
    }
}

TEST_F(External32Test, BehindTheEndMemoryStaysAsItWas) {
    const std::string path = path_of("log");
    MPI_File file = open(world->engine, path);
    EXPECT_EQ(calls_.File_set_view(file, 0, MPI_INT, MPI_INT, external32, MPI_INFO_NULL), MPI_SUCCESS);
    if (world->rank == 0) {
        const int numbers[] = {11, 12};
        EXPECT_EQ(calls_.File_write_at(file, 0, numbers, 2, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    settle(calls_, file);
    std::vector<int> back{1, 2, 3, 4};
    MPI_Status status;
    EXPECT_EQ(calls_.File_read_at_all(file, 1, back.data(), 4, MPI_INT, &status), MPI_SUCCESS);
    EXPECT_EQ(elements(status, MPI_INT), 1);
    EXPECT_EQ(back, (std::vector<int>{12, 2, 3, 4}));
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    remove_container(path);
}

/// What the MPI library knows no representation of that name for, is refused as it does it; internal is native where it is known.
TEST_F(External32Test, OtherNamesAreTheLibrarysToJudge) {
    const std::string path = path_of("two"), ordinary = world->path("ordinary");
    MPI_File file = open(world->engine, path), shared = open(world->library, ordinary);
    for (const char* const name : {internal, "no-such-representation"}) {
        SCOPED_TRACE(name);
        const int by_library = world->below.File_set_view(shared, 0, MPI_INT, MPI_INT, name, MPI_INFO_NULL);
        const int by_engine = calls_.File_set_view(file, 0, MPI_INT, MPI_INT, name, MPI_INFO_NULL);
        int library_class = -1, engine_class = -1;
        PMPI_Error_class(by_library, &library_class);
        PMPI_Error_class(by_engine, &engine_class);
        EXPECT_EQ(engine_class, library_class);
        const int number = 0x01020304;
        const int written = calls_.File_write_at(file, world->rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE);
        EXPECT_EQ(written, by_engine == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_UNSUPPORTED_OPERATION);
    }
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(world->library.close(&shared), MPI_SUCCESS);
    remove(ordinary);
    remove_container(path);
}

}  // namespace
}  // namespace ioweir
