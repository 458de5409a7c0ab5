// What tests of shared file pointers, atomic mode and data representations share: the ways in which a file lies in several, and a
// program that is run twice, by the MPI library on an ordinary file and by the engine on a container.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "mapped_world.hpp"

namespace ioweir {

/// Endings of files, by plan_of_parts.
inline const char* const ways[] = {"two", "each", "gathered", "log", "collected", "dealt", "striped"};

/// What a rank saw: compared between two runs.
class Seen {
public:
    template <typename T>
    void add(const char* what, const T& value) {
        text_ << what << ' ' << value << '\n';
    }
    template <typename T>
    void add(const char* what, const std::vector<T>& values) {
        text_ << what;
        for (const T& value : values) text_ << ' ' << +value;
        text_ << '\n';
    }
    [[nodiscard]] std::string text() const { return text_.str(); }

private:
    std::ostringstream text_;
};

class ModesTest : public MappedTest {
protected:
    using Program = std::function<void(const mpi::FileCalls& io, MPI_File file, Seen& seen)>;

    /// Runs it on an ordinary file through the MPI library, and on a container of each way: the same was seen, and the same bytes are left.
    void expect_as_in_one_file(const Program& program) {
        const std::string ordinary = world->path("ordinary");
        const std::string expected = run(world->below, ordinary, program);
        const std::vector<unsigned char> bytes = contents(ordinary);
        remove(ordinary);
        EXPECT_FALSE(bytes.empty());
        for (const char* const way : ways) {
            SCOPED_TRACE(way);
            const std::string path = world->path((std::string("file.") + way).c_str());
            EXPECT_EQ(run(calls_, path, program), expected);
            EXPECT_TRUE(is_container(path));
            EXPECT_EQ(temporary_files(), 0);
            merge_here(path);
            const auto mine = contents(path);
            EXPECT_EQ(mine.size(), bytes.size());
            EXPECT_TRUE(mine == bytes) << "first at byte "
                                       << std::mismatch(mine.begin(), mine.end(), bytes.begin(), bytes.end()).first -
                                              mine.begin();
            EXPECT_EQ(directories(), 0);
            remove(path);
            if (on_any_rank(HasFailure())) return;
        }
    }

    /// Shared file pointers that are somewhere.
    static std::int64_t temporary_files() {
        PMPI_Barrier(MPI_COMM_WORLD);
        std::int64_t count = 0;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(world->directory))
            count += entry.path().filename().string().starts_with("pointer.") ? 1 : 0;
        PMPI_Barrier(MPI_COMM_WORLD);
        return count;
    }

    static int elements(const MPI_Status& status, MPI_Datatype type) {
        int count = -1;
        PMPI_Get_count(&status, type, &count);
        return count;
    }
    static MPI_Offset position(const mpi::FileCalls& io, MPI_File file) {
        MPI_Offset offset = -1;
        EXPECT_EQ(io.File_get_position_shared(file, &offset), MPI_SUCCESS);
        return offset;
    }
    /// What all have written is there for all.
    static void settle(const mpi::FileCalls& io, MPI_File file) {
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(io.File_sync(file), MPI_SUCCESS);
        PMPI_Barrier(MPI_COMM_WORLD);
    }

private:
    std::string run(const mpi::FileCalls& io, const std::string& path, const Program& program) const {
        MPI_File file = MPI_FILE_NULL;
        EXPECT_EQ(io.File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
                  MPI_SUCCESS);
        Seen seen;
        program(io, file, seen);
        EXPECT_EQ(io.File_close(&file), MPI_SUCCESS);
        PMPI_Barrier(MPI_COMM_WORLD);
        return seen.text();
    }
};

}  // namespace ioweir
