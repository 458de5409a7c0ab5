// The sums of a trace in one pass over its events by time: per layer and operation, of the run, of each file, of each unit (a
// rank; without MPI a process), of each call site. Memory grows with the files and ranks that there are, not with the events.
// What does not live here: which process belongs to which unit, which paths are one file, what a bandwidth is, wording
// (python/ioweir/trace/attribute.py, report/figures.py).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/kinds.hpp"
#include "analysis/meetings.hpp"
#include "analysis/nesting.hpp"
#include "base/result.hpp"
#include "format/reader.hpp"

namespace ioweir::analysis {

/// Length of a union of intervals that come in order of their starts.
/// Example: [0, 4), [2, 6), [8, 9) -> 7.
class Union {
public:
    void add(std::int64_t start, std::int64_t end) {
        if (end <= reached_) return;
        // Times of a damaged trace may wrap around.
        length_ = format::codec::sum(length_, format::codec::difference(end, start > reached_ ? start : reached_));
        reached_ = end;
    }
    [[nodiscard]] std::int64_t length() const { return length_; }

private:
    std::int64_t length_ = 0;
    std::int64_t reached_ = std::numeric_limits<std::int64_t>::min();
};

/// Calls by the bytes that they moved: bin 0 holds those that moved none, bin k those of 2^(k-1) .. 2^k - 1.
class SizeHistogram {
public:
    struct Bin {
        std::uint32_t number;
        std::uint64_t calls;
        std::uint64_t least;  ///< bytes of its smallest call
        std::uint64_t most;
    };
    void add(std::uint64_t bytes);
    /// The bins that hold something, smallest first.
    [[nodiscard]] std::vector<Bin> bins() const;

private:
    std::vector<Bin> bins_;  ///< few: programs use few sizes on one file; the one used last comes first
};

/// Sums of one operation of one layer, in one group.
struct Row {
    std::uint32_t group = 0;
    std::uint32_t slot = 0;  ///< layer x operations + operation
    std::uint64_t calls = 0;
    std::uint64_t failed = 0;
    std::uint64_t bytes = 0;
    std::int64_t time_ns = 0;
    std::int64_t behind_ns = 0;  ///< of it, in which the thread did something else: requests that were under way
    Union span;
    std::int64_t longest_ns = -1;  ///< -1: there was none
    std::int64_t longest_start_ns = 0;
    std::uint32_t longest_unit = 0;
    std::uint32_t longest_file = 0;
    SizeHistogram sizes;  ///< of reads and writes
};

/// Rows by group and slot; made when the first event of their kind comes.
class Table {
public:
    Table(std::size_t groups, std::size_t slots) : slots_(slots), index_(groups) {}
    Row& row(std::uint32_t group, std::uint32_t slot);
    [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }

private:
    std::size_t slots_;
    std::vector<std::vector<std::uint32_t>> index_;  ///< by group; empty until used, else a row's number + 1 by slot
    std::vector<Row> rows_;
};

/// Calls, bytes and time.
struct Amount {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
    std::int64_t time_ns = 0;
};

/// What the calls of one operation of one layer, by one unit on one file, come to: the finest sums that there are, from which
/// others are made where the events are not at hand.
struct Cell {
    std::uint32_t slot = 0;
    std::uint32_t file = 0;
    std::uint32_t unit = 0;
    bool outermost = false;  ///< no recorded call is around them
    std::uint64_t calls = 0;
    std::uint64_t failed = 0;
    std::uint64_t bytes = 0;
    std::int64_t time_ns = 0;
    std::int64_t longest_ns = 0;
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();  ///< when the first of them began
    std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();   ///< when the last of them had ended
    SizeHistogram sizes;
};

/// Short calls: they moved fewer bytes than they were asked for, and no file ended there.
struct Less {
    std::uint64_t calls = 0;
    std::uint64_t continued = 0;  ///< of these: a later call of the thread on the file went on where they had ended
    std::uint64_t missing = 0;    ///< bytes of the others
};

/// What the sums are made by; decided by whoever asks.
struct Question {
    Vocabulary names;
    std::string mpi_layer;                  ///< the layer whose calls are taken apart
    std::string posix_layer;                ///< into calls of this layer
    std::vector<std::string> data_ops;      ///< operations that move bytes
    std::vector<std::string> transfer_ops;  ///< operations of MPI-IO calls that move data, also for other ranks
    std::string wait_layer;                 ///< waiting for other ranks outside of I/O: in sums of run and units only
    std::string close_op;                   ///< inside it, the engine's reads are a verification; "": there was none
    std::vector<std::int32_t> unit_of_process;  ///< -1: does not count
    std::size_t units = 0;
    std::vector<std::uint32_t> file_of_path;
    std::vector<std::uint8_t> runtime_file;  ///< by file: made by the MPI runtime for itself, apart from the program's
    bool cells = false;                      ///< whether Summary::cells is wanted
};

struct Summary {
    Summary(std::size_t files, std::size_t units, std::size_t sites, std::size_t slots)
        : job(1, slots), by_file(files, slots), by_unit(units, slots), by_site(sites, slots) {}

    Table job, by_file, by_unit;
    /// Calls that failed, by slot and error: errno, MPI's error class.
    std::map<std::pair<std::uint32_t, std::int32_t>, std::uint64_t> errors;
    std::vector<Less> less;  ///< by slot
    /// By data operation: POSIX calls of the MPI library that failed inside of MPI-IO calls of the same kind that did not.
    std::vector<std::uint64_t> unreported;
    /// The same of short calls with which nobody went on.
    std::vector<std::uint64_t> unreported_less;
    Table by_site;  ///< empty where call sites were not recorded
    std::uint64_t events = 0;
    std::uint64_t counted = 0;      ///< events that are in the tables
    std::vector<Union> unit_io;     ///< by unit: in any recorded call
    std::vector<Amount> outermost;  ///< by slot: calls with no recorded call around them
    /// By slot of an outermost call and slot of what it made directly: calls around which are calls of its layer only.
    std::vector<std::vector<Amount>> inside;
    std::vector<std::vector<Amount>> origins;  ///< by origin, operation: POSIX calls
    /// Time of POSIX calls inside MPI-IO calls, by what the MPI-IO call does (position in data_ops) and what the POSIX call
    /// does: of the run, and by the MPI-IO call's file.
    std::vector<std::vector<std::int64_t>> parts;
    std::unordered_map<std::uint32_t, std::vector<std::vector<std::int64_t>>> file_parts;
    /// Of `parts`, by data operation of the MPI-IO call: in which its thread did something else while requests were under way.
    std::vector<std::int64_t> behind;
    std::unordered_map<std::uint64_t, std::vector<Cell>>
        cells;  ///< by file and unit; empty where nobody asked for them
    /// Who waited for whom in collective MPI-IO calls: by unit; and by unit and slot, of calls around them too.
    std::vector<std::pair<std::uint32_t, Waited>> waited;
    std::vector<std::tuple<std::uint32_t, std::uint32_t, Waited>> waited_by_slot;
    /// POSIX reads and writes inside of collective MPI-IO calls, by unit, data operation: aggregators' work.
    std::unordered_map<std::uint32_t, std::vector<Amount>> collective;
    std::vector<Amount> by_process;  ///< all events of every process; bytes of data operations
    std::unordered_map<std::uint32_t, std::uint64_t>
        late_ends;   ///< by file: completions found some time after they came
    Amount runtime;  ///< on the MPI runtime's own files; calls: events
    std::uint64_t runtime_files = 0;
    Amount verification;
    std::int64_t last_end_ns = std::numeric_limits<std::int64_t>::min();
};

/// For whoever watches from another thread.
struct Watch {
    std::atomic<std::uint64_t> done = 0;  ///< events that have been added so far
    std::atomic<bool> stop = false;       ///< set it, and the work ends soon with an Error
};

Result<Summary> summarise(const format::TraceFiles& files, const Question& question, Watch& watch);

}  // namespace ioweir::analysis
