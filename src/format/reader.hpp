// Reads trace files into columns. Reads what is there: a truncated or damaged file gives everything up to the damage and
// says where it is.
// What does not live here: what the events mean together (Python), writing (tracer/ring).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ioweir_generated/functions.hpp"
#include "ioweir_generated/records.hpp"

namespace ioweir::format {

/// One process image: from exec (or fork) to its end.
struct Process {
    std::uint32_t pid = 0;
    std::uint32_t ppid = 0;
    std::uint64_t image = 0;
    std::uint64_t parent_image = 0;  ///< forked from; 0: began by exec
    std::uint32_t host = 0;          ///< index into Trace::hosts
    std::string executable;
    std::int32_t rank = -1;
    std::int32_t ranks = 0;
    std::string mpi_library;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = -1;           ///< -1: no normal end was seen
    std::int64_t mpi_init_ns = -1;      ///< -1: MPI was not initialised
    std::int64_t mpi_finalize_ns = -1;  ///< -1: MPI was not finalised
};

struct Note {
    std::uint32_t process = 0;  ///< index into Trace::processes
    std::uint32_t code = 0;     ///< NoteCode, or a newer one
    std::int64_t value = 0;
    std::int64_t time_ns = 0;
    std::string path;
    std::string text;
};

/// One entry an event in every column, in the order of the files. Times are nanoseconds after `epoch_ns`.
struct Events {
    std::vector<std::uint32_t> process;  ///< index into Trace::processes
    std::vector<std::uint32_t> thread;   ///< unique in the trace
    std::vector<std::uint32_t> sequence;
    std::vector<std::uint32_t> parent;
    std::vector<std::uint16_t> function;
    std::vector<std::uint8_t> origin;
    std::vector<std::uint8_t> flags;
    std::vector<std::uint32_t> path;  ///< index into Trace::paths
    std::vector<std::int64_t> start_ns;
    std::vector<std::int64_t> duration_ns;
    std::vector<std::int64_t> offset;
    std::vector<std::int64_t> bytes;
    std::vector<std::int32_t> error;  ///< errno or MPI error class of a failed call
};

struct Trace {
    std::uint32_t version = 0;
    std::int64_t epoch_ns = 0;  ///< time 0 of the trace, nanoseconds since 1970 (CLOCK_REALTIME)
    Events events;
    std::vector<Process> processes;
    std::vector<std::string> hosts;
    std::vector<std::string> paths;  ///< paths[0] is "": unknown
    std::vector<Note> notes;
    std::uint64_t dropped = 0;             ///< events that were lost for want of space
    std::uint64_t disabled_processes = 0;  ///< processes that ran out of space
    std::vector<std::string> damage;       ///< what could not be read, and where
};

/// `files`: the trace files of the nodes. An Error only when a file cannot be opened or is no trace file at all.
Result<Trace> read_trace(const std::vector<std::string>& files);

}  // namespace ioweir::format
