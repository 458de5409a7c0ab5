// Collective reads of a set (Liu et al., figure 5): the ranks whose parts lie in a file read it together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "mpi/mpi.hpp"
#include "partition/agreement.hpp"
#include "partition/core/shape.hpp"
#include "partition/files/set_reader.hpp"
#include "partition/options.hpp"

namespace ioweir::partition {

/// Parts are dealt level over the ranks, so that a file's ranks follow each other, and each rank's files do, too.
class ReadTogether {
public:
    /// Collective over `comm`. `made` is there on all ranks or none.
    [[nodiscard]] static std::optional<Failure> open(MPI_Comm comm, const SetReader& reader, const Hints& hints,
                                                     std::unique_ptr<ReadTogether>& made);
    ~ReadTogether();
    ReadTogether(const ReadTogether&) = delete;
    ReadTogether& operator=(const ReadTogether&) = delete;

    /// Collective over `comm`: `bytes` at `offset` of file `number`, which is one of this rank's; number -1: nothing.
    [[nodiscard]] std::optional<Failure> read(std::int64_t number, std::int64_t offset, void* data, std::int64_t bytes);
    [[nodiscard]] bool has(std::int64_t number) const;

private:
    struct File {
        std::int64_t number = 0;
        std::string path;
        MPI_Comm ranks = MPI_COMM_NULL;
        MPI_File file = MPI_FILE_NULL;
    };
    ReadTogether() = default;
    [[nodiscard]] std::optional<Failure> open_own(MPI_Comm comm, const SetReader& reader, const Hints& hints);

    std::vector<File> files_;  ///< of this rank, ascending: so all ranks go through those that they share in one order
};

}  // namespace ioweir::partition
