// Hdf5Options: what a rule of a plan wishes for files that a program opens through HDF5 (reference: docs/reference/plan-file.md, reasons:
// docs/explanation/hdf5.md; Howison et al. 2010, section III-A).
// What does not live here: carrying it out (adapters/hdf5), reading and writing it (spec/plan_keys.toml).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ioweir::policy {

/// Chunks of the new datasets whose name a pattern fits.
struct Hdf5Chunks {
    std::string dataset;              ///< an fnmatch pattern, compared with the name that the program gives
    std::vector<std::int64_t> shape;  ///< elements in each dimension, the slowest first as in HDF5's C interface
    friend bool operator==(const Hdf5Chunks&, const Hdf5Chunks&) = default;
};

/// Which metadata operations are collective.
enum class Hdf5Collective : std::uint8_t { as_program, writes, all };
enum class Hdf5Transfer : std::uint8_t { as_program, independent, collective, automatic };

/// Sizes in bytes; 0, or what a member begins with, leaves the thing as the program has it.
struct Hdf5Options {
    std::int64_t alignment = 0;
    bool alignment_by_layout = false;  ///< alignment = "auto": the storage's stripes
    std::int64_t threshold = 0;        ///< objects of this size and more are aligned; 0: of half the alignment
    std::int64_t hold_metadata = 0;    ///< so much metadata waits for flush or close, or
    bool hold_all_metadata = false;    ///< all of it: evictions are off
    std::int64_t metadata_block = 0;
    std::int64_t small_data_block = 0;
    std::int64_t sieve_buffer = 0;
    Hdf5Collective collective_metadata = Hdf5Collective::as_program;
    bool never_fill = false;
    bool learn_chunks = false;  ///< chunks = "learn": from the first write of a dataset of the same shape
    std::vector<Hdf5Chunks> chunks = {};
    std::int64_t istore_k = 0;
    bool istore_k_by_chunks = false;  ///< istore_k = "auto"
    std::string libver = {};          ///< lower bound: "v18", "v110", "v112", "v114"
    std::int64_t page = 0;            ///< paged aggregation with pages of this size
    std::int64_t page_buffer = 0;
    Hdf5Transfer transfer = Hdf5Transfer::as_program;
    bool memory_in_file_shape = false;  ///< memory_shape = "file"; also where datasets are given chunks

    friend bool operator==(const Hdf5Options&, const Hdf5Options&) = default;
    [[nodiscard]] bool shapes_memory() const { return memory_in_file_shape || learn_chunks || !chunks.empty(); }
    [[nodiscard]] bool asks_for_anything() const { return *this != Hdf5Options{}; }
};

}  // namespace ioweir::policy
