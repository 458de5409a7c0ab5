// The counted calls of a trace as columns, one row a call, ordered by unit and start: whose each call is, what is around it, with which
// calls of other ranks it is one. The rules of findings look at them (python/ioweir/findings/columns.py).
// What does not live here: what calls cost (prices.hpp), sums without rows (summary.hpp), judgement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/kinds.hpp"
#include "base/large_pages.hpp"
#include "base/result.hpp"
#include "format/reader.hpp"

namespace ioweir::analysis {

/// How the table is made; decided by whoever asks.
struct CallQuestion {
    Vocabulary names;
    std::string mpi_layer;                      ///< in whose collective calls ranks meet
    std::string posix_layer;                    ///< whose calls reach the storage
    std::string wait_layer;                     ///< waiting for other ranks outside of I/O, which has rows of its own
    std::vector<std::string> data_ops;          ///< operations that move bytes
    std::string open_op;                        ///< after which a file's position is 0
    std::string seek_op;                        ///< whose offset is the position after it
    std::vector<std::int32_t> unit_of_process;  ///< -1: does not count
    std::size_t units = 1;
    std::size_t unit_count =
        1;  ///< how many units take part in a call of all; more than `units` where some left no trace
    std::vector<std::uint32_t> file_of_path;
    std::vector<std::uint8_t> runtime_file;  ///< by file: made by the MPI runtime for itself; its calls are left out
    /// Calls that the table has room for: of more, those in stretches of the run (gathered_calls.hpp); 0: room for all.
    std::uint64_t most = 0;
};

/// Of a row, unit or file that is there, as columns have it.
inline std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

struct CallTable {
    static constexpr int deepest = 16;  ///< no call is nested deeper
    template <typename T>
    using Column = std::vector<T, LargePages<T>>;
    using Numbers = Column<std::int64_t>;
    using Flags = Column<std::uint8_t>;

    Numbers unit;
    Numbers file;
    Numbers start;
    Numbers end;  ///< of an asynchronous request in an MPI-IO call: when something there said that it had ended
    Numbers duration;
    Numbers bytes;  ///< 0 of failed calls, and of those that end what others began
    Numbers offset;
    Column<std::uint16_t> function;
    Column<std::uint32_t> access;
    Column<std::int8_t> layer;
    Column<std::int8_t> op;
    Column<std::uint8_t> origin;
    Flags collective;
    Flags completes;
    Flags failed;
    Flags outermost;
    // Rows; -1: there is none.
    Numbers parent;     ///< the call right around
    Numbers root;       ///< the outermost one around; of an outermost one itself
    Numbers mpi;        ///< the innermost MPI-IO call around
    Numbers following;  ///< of an outermost call the next outermost one of its thread
    /// Of an outermost call how long its thread was in no call before it; 0 where it waits for other ranks.
    Numbers pause_before;
    Numbers meeting;        ///< number of the collective call that it is with calls of other ranks; -1: of none
    Numbers arrival_shift;  ///< how long it waited there for the last rank
    Numbers arrival;        ///< when its own work began: when the last rank had come
    Numbers phase;          ///< how many meetings of all units had begun by then
    Numbers boundaries;     ///< when the last rank came to each meeting of all units, rising

    /// Long calls of MPI outside of I/O, ordered by unit and start.
    struct {
        Numbers unit, function, start, end;
    } waits;
    /// One row a meeting, by file and number of the call on it: who came last, and when the one before it came.
    struct {
        Numbers unit, before, arrival, file, ranks;
    } late;

    /// Stretches of the run in which the calls lie; 0: they are all calls of the run.
    std::size_t stretches = 0;
    /// Nanoseconds in outermost calls of the whole run, over those in calls of the table: at least 1.
    double whole_over_rows = 1;

    std::size_t units = 1;
    std::size_t files = 1;
    std::int8_t posix = 0;      ///< a layer
    std::int8_t open = 0;       ///< an operation
    std::int8_t seek = 0;       ///< an operation
    std::vector<bool> is_data;  ///< by operation
    [[nodiscard]] std::size_t size() const { return unit.size(); }
};

/// Takes 150 bytes a call, and 64 while it is made of calls of the unit that has most. An Error where the functions' layers or operations have no names in the question.
Result<CallTable> read_calls(const format::TraceFiles& files, const CallQuestion& question);

}  // namespace ioweir::analysis
