// What tests of files in several parts share: ten bytes a rank in a container, read and removed again.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "container/merge.hpp"
#include "engine_world.hpp"

namespace ioweir {

/// Plan rules for files in several parts, one for each ending; a plan is this text and a test's own rules. Sizes are so small that a few
/// bytes of each rank are several rounds and several stripes.
inline constexpr const char* plan_of_parts = R"(
[[file]]
match = "*.two"
mapping = "grouped:2"
visibility = "sync"

[[file]]
match = "*.each"
mapping = "grouped:99"
visibility = "sync"

[[file]]
match = "*.gathered"
mapping = "grouped:2"
writers = "aggregators:1"
buffer = 64
visibility = "sync"

[[file]]
match = "*.log"
mapping = "log"
order = "arrival"
visibility = "sync"

[[file]]
match = "*.collected"
mapping = "log"
writers = "aggregators:2"
buffer = 64
visibility = "sync"

[[file]]
match = "*.two-call"
mapping = "grouped:2"
visibility = "call"

[[file]]
match = "*.gathered-call"
mapping = "grouped:2"
writers = "aggregators:1"
buffer = 64
visibility = "call"

[[file]]
match = "*.log-call"
mapping = "log"
order = "arrival"
visibility = "call"

[[file]]
match = "*.collected-call"
mapping = "log"
writers = "aggregators:2"
buffer = 64
visibility = "call"

[[file]]
match = "*.dealt"
mapping = "subfiles:3"
stripe = { size = 32 }

[[file]]
match = "*.striped"
mapping = "subfiles:2"
writers = "aggregators:2"
domains = "cyclic"
buffer = 64
stripe = { size = 32 }
)";

inline bool is_container(const std::string& path) {
    const auto header_file = container::read_header_file(path);
    return header_file.ok() && header_file.value().has_value();
}

/// Directories of containers, whole or not.
inline std::int64_t directories() {
    std::int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(world->directory))
        count += entry.path().filename().string().starts_with(".ioweir-") ? 1 : 0;
    return count;
}

inline void merge_here(const std::string& path) {
    PMPI_Barrier(MPI_COMM_WORLD);
    if (world->rank == 0) {
        storage::PosixBackend posix;
        const auto merged = container::merge(posix, path, path);
        EXPECT_TRUE(merged.ok()) << (merged.ok() ? "" : merged.error().message());
    }
    PMPI_Barrier(MPI_COMM_WORLD);
}

class MappedTest : public EngineTest {
protected:
    const mpi::FileCalls& calls_ = world->hooks;
    const int last_ = world->ranks - 1;

    /// Ten bytes a rank, in the order of ranks.
    std::string ten_each() const {
        std::string all;
        for (int rank = 0; rank < world->ranks; ++rank) all += std::string(10, static_cast<char>('a' + rank % 26));
        return all;
    }
    void write_ten(MPI_File file) const {
        const std::string data = ten_each().substr(static_cast<std::size_t>(10 * world->rank), 10);
        EXPECT_EQ(calls_.File_write_at_all(file, 10 * world->rank, data.data(), 10, MPI_BYTE, MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
    }
    /// A closed container with those.
    void make(const std::string& path) const {
        MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
        write_ten(file);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_TRUE(is_container(path));
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    std::string read_all(MPI_File file, MPI_Offset from = 0) const {
        std::string text(4096, '?');
        MPI_Status status;
        EXPECT_EQ(calls_.File_read_at(file, from, text.data(), 4096, MPI_BYTE, &status), MPI_SUCCESS);
        int bytes = -1;
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        text.resize(static_cast<std::size_t>(bytes));
        return text;
    }
    std::string read_file(const std::string& path, MPI_Comm comm = MPI_COMM_WORLD) const {
        MPI_File file = open(world->engine, path, MPI_MODE_RDONLY, comm);
        if (file == MPI_FILE_NULL) return "cannot be opened";
        const std::string text = read_all(file);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        return text;
    }
    void remove_container(const std::string& path) const {
        PMPI_Barrier(MPI_COMM_WORLD);
        if (world->rank == 0) {
            EXPECT_EQ(calls_.File_delete(path.c_str(), MPI_INFO_NULL), MPI_SUCCESS);
            EXPECT_FALSE(std::filesystem::exists(path));
            EXPECT_EQ(directories(), 0);
        }
        PMPI_Barrier(MPI_COMM_WORLD);
    }
};

}  // namespace ioweir
