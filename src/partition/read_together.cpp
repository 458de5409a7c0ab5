#include "partition/read_together.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "ioweir/ioweir.h"
#include "partition/memory_type.hpp"

namespace ioweir::partition {

std::optional<Failure> ReadTogether::open(MPI_Comm comm, const SetReader& reader, const Hints& hints,
                                          std::unique_ptr<ReadTogether>& made) {
    std::unique_ptr<ReadTogether> together(new ReadTogether);
    if (auto failure = agree(comm, together->open_own(comm, reader, hints))) {
        together.reset();
        return failure;
    }
    made = std::move(together);
    return std::nullopt;
}

/// Collective over `comm`; the failure is this rank's.
std::optional<Failure> ReadTogether::open_own(MPI_Comm comm, const SetReader& reader, const Hints& hints) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const std::int64_t parts = reader.manifest().parts();
    const Span mine = level_share(parts, ranks, rank);
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Comm_group(comm, &all);
    std::optional<Failure> failure;
    for (std::int64_t number = 0; number < std::ssize(reader.manifest().files); ++number) {
        const Span held = reader.manifest().files[static_cast<std::size_t>(number)].parts;
        if (mine.count == 0 || held.count == 0 || held.end() <= mine.first || mine.end() <= held.first) continue;
        const auto first = static_cast<int>(level_owner(parts, ranks, held.first));
        const auto last = static_cast<int>(level_owner(parts, ranks, held.end() - 1));
        int range[1][3] = {{first, last, 1}};
        MPI_Group group = MPI_GROUP_NULL;
        MPI_Group_range_incl(all, 1, range, &group);
        File file{number, reader.name().file(number), MPI_COMM_NULL, MPI_FILE_NULL};
        constexpr std::int64_t tags = 32768;  // every MPI library has as many
        MPI_Comm_create_group(comm, group, static_cast<int>(number % tags), &file.ranks);
        MPI_Group_free(&group);
        MPI_Info info = MPI_INFO_NULL;
        MPI_Info_create(&info);
        for (const auto& [key, value] : hints) MPI_Info_set(info, key.c_str(), value.c_str());
        const int result = MPI_File_open(file.ranks, file.path.c_str(), MPI_MODE_RDONLY, info, &file.file);
        MPI_Info_free(&info);
        if (result != MPI_SUCCESS) file.file = MPI_FILE_NULL;
        if (!failure) failure = of_mpi(result, "a file of a set cannot be opened", file.path);
        files_.push_back(file);
    }
    MPI_Group_free(&all);
    return failure;
}

ReadTogether::~ReadTogether() {
    for (File& file : files_) {
        if (file.file != MPI_FILE_NULL) MPI_File_close(&file.file);
        MPI_Comm_free(&file.ranks);
    }
}

bool ReadTogether::has(std::int64_t number) const {
    return std::any_of(files_.begin(), files_.end(), [&](const File& file) { return file.number == number; });
}

std::optional<Failure> ReadTogether::read(std::int64_t number, std::int64_t offset, void* data, std::int64_t bytes) {
    std::optional<Failure> failure;
    for (const File& file : files_) {
        const bool here = file.number == number && bytes > 0;
        const MemoryType type({{data, here ? bytes : 0}});
        MPI_Status status;
        const int result =
            MPI_File_read_at_all(file.file, here ? offset : 0, MPI_BOTTOM, here ? 1 : 0, type.get(), &status);
        if (!failure) failure = of_mpi(result, "a set cannot be read", file.path);
        if (result != MPI_SUCCESS || !here) continue;
        MPI_Count moved = 0;
        MPI_Get_elements_x(&status, MPI_BYTE, &moved);
        if (moved != bytes && !failure)
            failure = Failure{IOWEIR_ERR_DAMAGED,
                              {"a set cannot be read",
                               file.path + ": " + std::to_string(moved) + " of " + std::to_string(bytes) +
                                   " bytes at " + std::to_string(offset),
                               "has the file become shorter?"}};
    }
    return failure;
}

}  // namespace ioweir::partition
