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
#include "partition/options.hpp"
#include "partition/read_together.hpp"

namespace ioweir::partition {

class ReadSet {
public:
    /// Collective over `comm`. `step` -1: the last complete one. `made` is there on all ranks or none.
    [[nodiscard]] static std::optional<Failure> open(MPI_Comm comm, const std::string& base, std::int64_t step,
                                                     MPI_Info info, std::unique_ptr<ReadSet>& made);
    ~ReadSet() {
        together_.reset();
        MPI_Comm_free(&comm_);
    }
    ReadSet(const ReadSet&) = delete;
    ReadSet& operator=(const ReadSet&) = delete;

    /// The code for what the reader says.
    [[nodiscard]] static Failure failure_of(const Error& error);

    [[nodiscard]] SetReader& reader() { return reader_; }
    [[nodiscard]] const SetReader& reader() const { return reader_; }
    [[nodiscard]] Span my_parts() const { return mine_; }

    /// Collective over `comm`: reads the items of a block of one of this rank's parts (from 0), or nothing (part -1). `mine`: what is wrong with this rank's
    /// arguments; it then takes part without a block. A failure of this rank's alone.
    [[nodiscard]] std::optional<Failure> read_all(const std::string& field, std::int64_t part, void* data,
                                                  std::int64_t bytes, std::int64_t item_bytes,
                                                  std::optional<Failure> mine);

private:
    ReadSet(MPI_Comm comm, SetReader reader, Span mine, Hints hints)
        : comm_(comm), reader_(std::move(reader)), mine_(mine), hints_(std::move(hints)) {}
    /// Which block is read; a failure: none.
    [[nodiscard]] std::optional<Failure> find(const std::string& field, std::int64_t part, std::int64_t bytes,
                                              PartFile::Block& block, PartFile*& file);

    MPI_Comm comm_;  ///< ours
    SetReader reader_;
    Span mine_;
    Hints hints_;
    std::unique_ptr<ReadTogether> together_;  ///< from the first collective read on
};

}  // namespace ioweir::partition
