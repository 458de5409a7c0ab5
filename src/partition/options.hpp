// How a set is written, as an MPI_Info says it (keys: include/ioweir/ioweir.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mpi/mpi.hpp"
#include "partition/agreement.hpp"

namespace ioweir::partition {

enum class BlockLayout { unaligned, aligned, automatic };
enum class WriteCalls { collective, split, independent, direct, automatic };

/// All ranks of a file call them.
[[nodiscard]] inline bool is_collective(WriteCalls calls) {
    return calls == WriteCalls::collective || calls == WriteCalls::split;
}
[[nodiscard]] std::string name_of(WriteCalls calls);
/// `name`: of name_of().
[[nodiscard]] WriteCalls calls_of_name(const std::string& name);

struct Options {
    BlockLayout layout = BlockLayout::automatic;
    WriteCalls calls = WriteCalls::automatic;
    std::int64_t block_bytes = std::int64_t{4} << 20;
    std::int64_t buffer_bytes = std::int64_t{128} << 20;
    bool directories = true;
    bool replaces = false;
    bool durable = true;
};

struct ServiceOptions {
    bool threads = false;  ///< delegates are threads of ranks that work, too
    bool anywhere = true;  ///< such threads run on any processor, not only on their rank's
    std::int64_t delegate_bytes = std::int64_t{128} << 20;  ///< of memory for blocks
    std::int64_t worker_bytes = std::int64_t{64} << 20;     ///< that may be on their way
    std::int64_t set_bytes = 0;                             ///< of all workers in a set; 0: not said
};

/// Each rank reads its own. A Failure names the key, the value and what there is.
[[nodiscard]] std::optional<Failure> read_options(MPI_Info info, Options& options);
[[nodiscard]] std::optional<Failure> read_options(MPI_Info info, ServiceOptions& options);

/// Reading has no keys of ours: an unknown one is said.
[[nodiscard]] std::optional<Failure> check_reading(MPI_Info info);

/// Keys and values that are the MPI library's.
using Hints = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] Hints hints_of(MPI_Info info);

}  // namespace ioweir::partition
