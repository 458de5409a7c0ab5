// Files in groups (mapping = grouped:N) under real MPI processes: the same random cases as with one file, seen through containers by
// writers, later readers and after merging; what cannot be done is refused; faults; what is deleted is gone.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "container/merge.hpp"
#include "engine_world.hpp"
#include "mapped_world.hpp"

namespace {

thread_local bool no_memory = false;  ///< for what this thread asks for next

}  // namespace

void* operator new(std::size_t bytes) {
    void* const memory = std::exchange(no_memory, false) ? nullptr : std::malloc(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ioweir {
namespace {

namespace fs = std::filesystem;
using cases::CaseResult;
using cases::IoCalls;
using cases::Level;
using storage::FaultKind;

constexpr const char* further_rules = R"(
[[file]]
match = "*.ordered"
mapping = "grouped:3"
writers = "aggregators:2"
domains = "cyclic"
order = "contention-free"
buffer = 192
stripe = { size = 64, count = 2 }
visibility = "sync"

[[file]]
match = "*.chosen"
mapping = "log"
writers = "auto"
visibility = "sync"

[[file]]
match = "*.taken"
mapping = "subfiles:2"
writers = "auto"
stripe = { size = 64 }

[[file]]
match = "*.usual"
mapping = "grouped:2"

[[file]]
match = "*.two-chosen-call"
mapping = "grouped:2"
writers = "auto"
visibility = "call"
)";

const char* const strategies[] = {"two",     "log",   "each",    "gathered", "collected",
                                  "ordered", "dealt", "striped", "chosen",   "taken"};

[[maybe_unused]] const testing::Environment* const registered = add_world(std::string(plan_of_parts) + further_rules);

/// The engine's calls; what the last close of a case leaves is merged, so that the case can judge the file.
struct Merging {
    static inline std::string path;
    static inline bool last = false;
    static inline std::int64_t containers = 0;

    static int open(MPI_Comm comm, const char* name, int amode, MPI_Info info, MPI_File* file) {
        path = name;
        last = (amode & MPI_MODE_WRONLY) == 0;
        return world->engine.open(comm, name, amode, info, file);
    }
    static int close(MPI_File* file) {
        const int result = world->engine.close(file);
        PMPI_Barrier(MPI_COMM_WORLD);
        const bool there = is_container(path);
        containers += there ? 1 : 0;
        PMPI_Barrier(MPI_COMM_WORLD);
        if (there && last) merge_here(path);
        return result;
    }
    static IoCalls calls() {
        IoCalls calls = world->engine;
        calls.open = open;
        calls.close = close;
        return calls;
    }
};

TEST_F(EngineTest, LeavesTheSameBytesAsTheMpiLibrary) {
    Merging::containers = 0;
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        const char* const strategy = strategies[i % std::size(strategies)];
        SCOPED_TRACE("case " + std::to_string(i) + ", " + strategy);
        const std::string path = world->directory + "/case." + strategy;
        const CaseResult library = cases::run_case(world->library, Level::tame, 31, i, MPI_COMM_WORLD, path);
        const CaseResult engine = cases::run_case(Merging::calls(), Level::tame, 31, i, MPI_COMM_WORLD, path);
        EXPECT_EQ(all_problems(engine), "") << engine.text;
        EXPECT_TRUE(library.file == engine.file);
        EXPECT_TRUE(library.read_memory == engine.read_memory);
        if (on_any_rank(HasFailure())) return;
    }
    EXPECT_GT(Merging::containers, static_cast<std::int64_t>(world->cases / 3)) << "half of the files were new ones";
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0);
    EXPECT_EQ(directories(), 0) << "nothing is left behind";
}

TEST_F(MappedTest, AnyNumberOfRanksReadsItAndNoRuleIsNeeded) {
    const std::string path = world->path("file.each");
    const std::string other = world->path("file.unmatched");
    make(path);
    EXPECT_TRUE(world->noted(format::NoteCode::plan_applied, "mapping grouped:99") || world->rank != 0);
    EXPECT_EQ(read_file(path), ten_each());
    PMPI_Barrier(MPI_COMM_WORLD);
    if (world->rank == 0) {
        EXPECT_EQ(std::rename(path.c_str(), other.c_str()), 0);
        EXPECT_EQ(read_file(other, MPI_COMM_SELF), ten_each());
        EXPECT_TRUE(world->noted(format::NoteCode::plan_applied, "no rule, but a container is there"));
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(read_file(other), ten_each());
    // Without ioweir there is the short text that says what to do.
    const auto bytes = contents(other);
    EXPECT_LE(std::ssize(bytes), container::most_header_file_bytes);
    remove_container(other);
}

TEST_F(MappedTest, OpenedAgainForWritingItGoesOn) {
    const std::string path = world->path("file.two");
    make(path);
    MPI_File file = open(world->engine, path, MPI_MODE_RDWR);
    EXPECT_EQ(read_all(file), ten_each());
    // The last rank writes over what the first one wrote, and reads it at once; the others after sync.
    if (world->rank == last_) {
        EXPECT_EQ(calls_.File_write_at(file, 0, "XY", 2, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(read_all(file).substr(0, 3), "XYa");
    }
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    EXPECT_EQ(read_all(file), "XY" + ten_each().substr(2));
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    if (world->rank == 0) {
        EXPECT_EQ(calls_.File_write_at(file, 1, "Z", 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(read_file(path), "XZ" + ten_each().substr(2));
    merge_here(path);
    const auto bytes = contents(path);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "XZ" + ten_each().substr(2));
    EXPECT_EQ(directories(), 0);
    // Now it is an ordinary file, and stays one.
    file = open(world->engine, path, MPI_MODE_WRONLY);
    write_ten(file);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_FALSE(is_container(path));
    EXPECT_TRUE(world->rank != 0 || world->noted(format::NoteCode::message, "an ordinary file is there already"));
    remove(path);
}

TEST_F(MappedTest, SizesAreThoseOfTheLogicalFile) {
    const std::string path = world->path("file.two");
    make(path);
    MPI_File file = open(world->engine, path, MPI_MODE_RDWR);
    MPI_Offset size = -1, position = -1;
    const MPI_Offset all = 10 * world->ranks;
    EXPECT_EQ(calls_.File_get_size(file, &size), MPI_SUCCESS);
    EXPECT_EQ(size, all);
    EXPECT_EQ(calls_.File_seek(file, -3, MPI_SEEK_END), MPI_SUCCESS);
    EXPECT_EQ(calls_.File_get_position(file, &position), MPI_SUCCESS);
    EXPECT_EQ(position, all - 3);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(calls_.File_set_size(file, all - 5), MPI_SUCCESS);
    EXPECT_EQ(read_all(file), ten_each().substr(0, static_cast<std::size_t>(all - 5)));
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(calls_.File_set_size(file, all + 2), MPI_SUCCESS);
    const std::string zeros(7, '\0');
    const std::string expected = ten_each().substr(0, static_cast<std::size_t>(all - 5)) + zeros;
    EXPECT_EQ(read_all(file), expected);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(calls_.File_preallocate(file, 3), MPI_SUCCESS) << "never shortens";
    EXPECT_EQ(calls_.File_get_size(file, &size), MPI_SUCCESS);
    EXPECT_EQ(size, all + 2);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(calls_.File_preallocate(file, all + 4), MPI_SUCCESS);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(read_file(path), expected + std::string(2, '\0'));
    remove_container(path);
}

TEST_F(MappedTest, WhatTheLibraryWouldHaveToDoIsRefused) {
    const std::string path = world->path("file.two");
    make(path);
    MPI_File file = open(world->engine, path, MPI_MODE_RDWR);
    MPI_Datatype back_and_forth = MPI_DATATYPE_NULL;
    const int lengths[] = {1, 1}, at[] = {1, 0};
    PMPI_Type_indexed(2, lengths, at, MPI_INT, &back_and_forth);
    PMPI_Type_commit(&back_and_forth);
    // Some libraries refuse such a view themselves.
    char native[] = "native";
    (void)calls_.File_set_view(file, 0, MPI_INT, back_and_forth, native, MPI_INFO_NULL);
    int number = 5;
    EXPECT_EQ(calls_.File_write_at_all(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT_EQ(calls_.File_iwrite_at(file, 0, &number, 1, MPI_INT, &request), MPI_ERR_UNSUPPORTED_OPERATION);
    if (request != MPI_REQUEST_NULL) PMPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(calls_.File_write_shared(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    native_view(world->engine, file, 0, MPI_INT, MPI_INT);
    EXPECT_EQ(calls_.File_write(file, &number, 3, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION)
        << "a part of an etype, by a pointer that counts etypes";
    PMPI_Type_free(&back_and_forth);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_TRUE(world->noted(format::NoteCode::passed_through, "refused, for the bytes of the file lie in several"));
    EXPECT_TRUE(world->rank != 0 || world->noted(format::NoteCode::message, "a call is refused, for the bytes"));
    EXPECT_EQ(read_file(path), ten_each()) << "and nothing was changed";
    remove_container(path);
}

// PETSc writes a matrix's columns so, in the view that a vector before it has left. OMPIO moves such bytes; so does a container.
TEST_F(MappedTest, PartsOfEtypesAreMovedAtExplicitOffsets) {
    const std::string path = world->path("file.two");
    make(path);
    MPI_File file = open(world->engine, path, MPI_MODE_RDWR);
    native_view(world->engine, file, 0, MPI_DOUBLE, MPI_DOUBLE);
    // Of 16 bytes each, rank r writes the first 9 or 8.
    const int mine = world->rank % 2 == 0 ? 9 : 8;
    const std::string bytes(static_cast<std::size_t>(mine), static_cast<char>('a' + world->rank));
    MPI_Status status;
    EXPECT_EQ(calls_.File_write_at_all(file, 2 * world->rank, bytes.data(), mine, MPI_BYTE, &status), MPI_SUCCESS);
    int moved = 0;
    PMPI_Get_count(&status, MPI_BYTE, &moved);
    EXPECT_EQ(moved, mine);
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    std::string there(9, '?');
    EXPECT_EQ(calls_.File_read_at_all(file, 0, there.data(), 9, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(there, std::string(9, 'a'));
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    std::string expected = ten_each();
    expected.resize(std::max(expected.size(), static_cast<std::size_t>(16 * (last_ + 1) - (last_ % 2 == 0 ? 7 : 8))),
                    '\0');
    for (int rank = 0; rank <= last_; ++rank) {
        const std::size_t length = rank % 2 == 0 ? 9 : 8;
        expected.replace(static_cast<std::size_t>(16 * rank), length,
                         std::string(length, static_cast<char>('a' + rank)));
    }
    EXPECT_EQ(read_file(path), expected);
    remove_container(path);
}

// ROMIO's own pointer is wrong where a filetype has data below its lower bound; a container's calls cannot be left to the library.
TEST_F(MappedTest, PointersAreRightInAViewWithDataBelowTheLowerBound) {
    MPI_Datatype tile;
    MPI_Type_create_resized(MPI_INT, sizeof(int), static_cast<MPI_Aint>(sizeof(int)) * 3 * world->ranks, &tile);
    MPI_Type_commit(&tile);
    for (const char* const name : {"file.two", "file.log", "file.striped"}) {
        SCOPED_TRACE(name);
        const std::string path = world->path(name);
        MPI_File file = open(world->engine, path);
        EXPECT_EQ(calls_.File_set_view(file, static_cast<MPI_Offset>(sizeof(int)) * 3 * world->rank, MPI_INT, tile,
                                       "native", MPI_INFO_NULL),
                  MPI_SUCCESS);
        const auto expect_at = [&](MPI_Offset expected) {
            MPI_Offset position = -2;
            EXPECT_EQ(calls_.File_get_position(file, &position), MPI_SUCCESS);
            EXPECT_EQ(position, expected);
        };
        const std::vector<int> data{10 * world->rank + 1, 10 * world->rank + 2, 10 * world->rank + 3};
        expect_at(0);
        EXPECT_EQ(calls_.File_write(file, data.data(), 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
        expect_at(1);
        EXPECT_EQ(calls_.File_write_all(file, &data[1], 2, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
        expect_at(3);
        EXPECT_EQ(calls_.File_seek(file, -2, MPI_SEEK_CUR), MPI_SUCCESS);
        std::vector<int> back(2, 0);
        EXPECT_EQ(calls_.File_read(file, back.data(), 2, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(back, (std::vector<int>{data[1], data[2]}));
        EXPECT_NE(calls_.File_seek(file, -1, MPI_SEEK_SET), MPI_SUCCESS);
        expect_at(3);
        EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(calls_.File_seek(file, -1, MPI_SEEK_END), MPI_SUCCESS);
        EXPECT_EQ(calls_.File_read_all(file, back.data(), 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(back[0], data[2]);
        // In an ordinary view the library's is right again.
        EXPECT_EQ(calls_.File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_SUCCESS);
        expect_at(0);
        std::vector<int> all(static_cast<std::size_t>(9 * world->ranks - 2), -1);
        EXPECT_EQ(calls_.File_read(file, all.data(), static_cast<int>(all.size()), MPI_INT, MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::size_t each = static_cast<std::size_t>(world->ranks), piece = i / 3;
            EXPECT_EQ(all[i], i % 3 == 0 ? static_cast<int>(10 * (piece % each) + piece / each + 1) : 0) << i;
        }
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        remove_container(path);
    }
    MPI_Type_free(&tile);
}

TEST_F(MappedTest, ReadAndWriteNeedsThePlansWord) {
    const std::string path = world->path("file.usual");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    write_ten(file);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    const auto bytes = contents(path);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), ten_each());
    EXPECT_TRUE(world->rank != 0 || world->noted(format::NoteCode::message, "visibility"));
    remove(path);
}

/// Pieces side by side are read together, those with holes between them by each rank alone: the first half of the ranks has the former, the
/// second half the latter.
TEST_F(MappedTest, GroupsDifferInWhetherTheirRanksReadTogether) {
    const int ranks = world->ranks, half = (ranks + 1) / 2, piece = 16, pieces = 64;
    const bool first = world->rank < half;
    const int stride = piece * (first ? half : 64);
    const MPI_Offset begin = first ? world->rank * piece : half * piece * pieces + (world->rank - half) * piece;
    MPI_Datatype block, tile;
    MPI_Type_contiguous(piece, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, stride, &tile);
    MPI_Type_commit(&tile);
    MPI_Type_free(&block);
    const std::string path = world->path("file.two-chosen-call");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    EXPECT_EQ(calls_.File_set_view(file, begin, MPI_BYTE, tile, "native", MPI_INFO_NULL), MPI_SUCCESS);
    // Long enough for ranks that are alone to go without a meeting, and to meet again.
    for (int step = 0; step < 40; ++step) {
        const std::string mine(static_cast<std::size_t>(piece * pieces),
                               static_cast<char>('a' + (step + world->rank) % 26));
        EXPECT_EQ(calls_.File_write_at_all(file, 0, mine.data(), piece * pieces, MPI_BYTE, MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
        std::string back(mine.size(), '?');
        EXPECT_EQ(calls_.File_read_at_all(file, 0, back.data(), piece * pieces, MPI_BYTE, MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
        EXPECT_EQ(back, mine) << step;
    }
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    MPI_Type_free(&tile);
    remove_container(path);
}

/// What PnetCDF does when a header has grown: from the end, each rank reads a block that any rank may have written, and writes it further
/// behind, over what another one has put there; with barriers in between, but no sync.
TEST_F(MappedTest, CollectiveReadsSeeWhatAllHaveWrittenBefore) {
    const std::int64_t ranks = world->ranks, block = 40, blocks = 3 * ranks, shift = 2 * block + 8;
    for (const char* const strategy : strategies) {
        SCOPED_TRACE(strategy);
        const std::string path = world->path((std::string("file.") + strategy).c_str());
        MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
        std::string wanted;
        for (std::int64_t i = 0; i < blocks; ++i) {
            const std::string mine(static_cast<std::size_t>(block), static_cast<char>('a' + i % 26));
            wanted += mine;
            const bool writes = i % ranks == world->rank;
            EXPECT_EQ(calls_.File_write_at_all(file, i * block, mine.data(), writes ? static_cast<int>(block) : 0,
                                               MPI_BYTE, MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
        }
        for (std::int64_t i = blocks - 1; i >= 0; --i) {
            const int bytes =
                (i + 1) % ranks == world->rank ? static_cast<int>(block) : 0;  // another one than has written it
            PMPI_Barrier(MPI_COMM_WORLD);                                      // the others' last writes are over
            std::string moved(static_cast<std::size_t>(block), '-');
            EXPECT_EQ(calls_.File_read_at_all(file, i * block, moved.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
            if (bytes != 0) {
                EXPECT_EQ(moved, wanted.substr(static_cast<std::size_t>(i * block), moved.size())) << "block " << i;
            }
            EXPECT_EQ(
                calls_.File_write_at_all(file, i * block + shift, moved.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE),
                MPI_SUCCESS);
        }
        const std::string all = wanted.substr(0, static_cast<std::size_t>(shift)) + wanted;
        PMPI_Barrier(MPI_COMM_WORLD);
        std::string whole(all.size(), '-');
        EXPECT_EQ(
            calls_.File_read_at_all(file, 0, whole.data(), static_cast<int>(whole.size()), MPI_BYTE, MPI_STATUS_IGNORE),
            MPI_SUCCESS);
        EXPECT_EQ(whole, all);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        EXPECT_EQ(read_file(path), all) << "by the next handle";
        remove_container(path);
    }
}

/// MPI orders such writes only where they are synced in between. In one file they have this order nevertheless, and PnetCDF fills variables
/// in this way before it writes them.
TEST_F(MappedTest, ALaterCollectiveCallWritesOverAnEarlierOne) {
    const std::int64_t ranks = world->ranks, block = 24, calls = 40;
    for (const char* const strategy : strategies) {
        SCOPED_TRACE(strategy);
        const std::string path = world->path((std::string("file.") + strategy).c_str());
        MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
        std::string model(static_cast<std::size_t>((ranks + 3) * block), '\0');
        for (std::int64_t call = 0; call < calls; ++call) {
            // Each time another rank writes what others have written before, and what others will write afterwards.
            std::string mine;
            std::int64_t offset = 0;
            for (std::int64_t rank = 0; rank < ranks; ++rank) {
                const std::int64_t at = (rank + 3 * call) % ranks * block + call % 4 * block / 2;
                const std::string text(static_cast<std::size_t>(block),
                                       static_cast<char>('a' + (call + 7 * rank) % 26));
                model.replace(static_cast<std::size_t>(at), text.size(), text);
                if (rank == world->rank) mine = text, offset = at;
            }
            EXPECT_EQ(calls_.File_write_at_all(file, offset, mine.data(), static_cast<int>(block), MPI_BYTE,
                                               MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
            PMPI_Barrier(MPI_COMM_WORLD);
        }
        while (model.back() == '\0') model.pop_back();
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        EXPECT_EQ(read_file(path), model);
        remove_container(path);
    }
}

TEST_F(MappedTest, DeletedOnCloseItIsGone) {
    const std::string path = world->path("file.two");
    MPI_File file =
        open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN);
    write_ten(file);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(directories(), 0);
    PMPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(MappedTest, AContainerWithoutItsDirectoryIsAnErrorOnEveryRank) {
    const std::string path = world->path("file.two");
    make(path);
    const auto header_file = container::read_header_file(path).take();
    const std::string directory = container::directory_of(path, header_file->id);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (world->rank == 0) fs::rename(directory, directory + ".away");
    PMPI_Barrier(MPI_COMM_WORLD);
    for (const int amode : {MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_MODE_RDWR}) {
        MPI_File file = MPI_FILE_NULL;
        EXPECT_EQ(world->engine.open(MPI_COMM_WORLD, path.c_str(), amode, MPI_INFO_NULL, &file), MPI_ERR_IO);
        EXPECT_EQ(file, MPI_FILE_NULL);
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    if (world->rank == 0) fs::rename(directory + ".away", directory);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(read_file(path), ten_each());
    // A header file that was damaged.
    if (world->rank == 0) fs::resize_file(path, 100);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_File file = MPI_FILE_NULL;
    EXPECT_EQ(world->engine.open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_IO);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (world->rank == 0) {
        fs::remove_all(directory);
        fs::remove(path);
    }
    PMPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(MappedTest, WithoutMemoryASyncIsAnErrorAndNothingIsLost) {
    const std::string path = world->path("file.log");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    const std::string data(10, static_cast<char>('a' + world->rank));
    const MPI_Offset place = 10 * world->rank;
    EXPECT_EQ(calls_.File_write_at(file, place, data.data(), 10, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    no_memory = world->rank == 0;
    EXPECT_EQ(calls_.File_sync(file), MPI_ERR_IO) << "on every rank";
    EXPECT_FALSE(no_memory);
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    std::string back(10, '?');
    EXPECT_EQ(calls_.File_read_at(file, place, back.data(), 10, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(back, data);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    PMPI_Barrier(MPI_COMM_WORLD);
    const auto description = container::describe(path);
    ASSERT_TRUE(description.ok());
    EXPECT_TRUE(description.value().open.empty());
    EXPECT_EQ(description.value().held_bytes, 10 * world->ranks);
    remove_container(path);
}

TEST_F(MappedTest, AFailureReachesTheRankAtOnceAndTheOthersAtClose) {
    const std::string path = world->path("file.each");
    // The first write of a rank is its data, the next one its index.
    for (const std::int64_t nth : {1, 2}) {
        for (int struck = 0; struck < world->ranks; ++struck) {
            MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
            if (world->rank == struck) world->backend.arm({FaultKind::error, nth, ENOSPC});
            const std::string data(10, 'x');
            const int written =
                calls_.File_write_at(file, 10 * world->rank, data.data(), 10, MPI_BYTE, MPI_STATUS_IGNORE);
            EXPECT_EQ(written, world->rank == struck && nth == 1 ? MPI_ERR_NO_SPACE : MPI_SUCCESS);
            const int closed = calls_.File_close(&file);
            EXPECT_EQ(closed, world->rank == struck && nth == 1 ? MPI_SUCCESS : MPI_ERR_NO_SPACE);
            world->backend.arm({});
            PMPI_Barrier(MPI_COMM_WORLD);
            const auto description = container::describe(path);
            ASSERT_TRUE(description.ok());
            EXPECT_EQ(description.value().open.size(), 1U) << "it is not called complete";
            EXPECT_EQ(description.value().held_bytes, 10 * (world->ranks - 1));
            remove_container(path);
        }
    }
}

}  // namespace
}  // namespace ioweir
