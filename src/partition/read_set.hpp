// A set that the ranks of a communicator read. What it consists of is found by the first rank and told to the others; blocks each rank reads for itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "mpi/mpi.hpp"
#include "partition/agreement.hpp"
#include "partition/core/shape.hpp"
#include "partition/files/set_reader.hpp"

namespace ioweir::partition {

class ReadSet {
public:
    /// Collective over `comm`. `step` -1: the last complete one. `made` is there on all ranks or none.
    [[nodiscard]] static std::optional<Failure> open(MPI_Comm comm, const std::string& base, std::int64_t step,
                                                     std::unique_ptr<ReadSet>& made);

    /// The code for what the reader says.
    [[nodiscard]] static Failure failure_of(const Error& error);

    [[nodiscard]] SetReader& reader() { return reader_; }
    [[nodiscard]] const SetReader& reader() const { return reader_; }
    [[nodiscard]] Span my_parts() const { return mine_; }

private:
    ReadSet(SetReader reader, Span mine) : reader_(std::move(reader)), mine_(mine) {}

    SetReader reader_;
    Span mine_;
};

}  // namespace ioweir::partition
