// Recorder: keeps what a simulated run's ranks do, and writes it as the trace that the same run would have left: opening, MPI-IO calls with
// what they asked for, storage operations within them, flushing, closing. Of many ranks a sample is kept, one of each of as many equal
// stretches, numbered anew, and sums of all.
// Limits: calls of MPI and of the program besides I/O are not in it; a call with more than 65,536 pieces has no list of them; nodes' clocks
// agree to the bit.
// What does not live here: run.json (python/ioweir/predict/trace_out.py), the file format (format/writer.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "planner/topology.hpp"
#include "sim/observer.hpp"

namespace ioweir::sim {

struct RecorderOptions {
    std::string path;  ///< of the file
    int ranks = 1;
    int ranks_of_node = 1;   ///< as the machine has them
    int sample = 1024;       ///< most ranks that are kept
    bool alone = false;      ///< calls are independent ones
    bool by_engine = false;  ///< under a plan; else by the MPI library
    std::string rule;        ///< what the plan says of the file
    double compute_s = 0;    ///< of the program, between two calls that write
};

/// Sums over all ranks, of both directions.
struct RecordedSums {
    std::int64_t calls = 0;
    std::int64_t written_bytes = 0, read_bytes = 0;  ///< that the calls asked for
    std::int64_t operations = 0;
    std::int64_t stored_bytes = 0, fetched_bytes = 0;  ///< that operations moved
    std::int64_t messages = 0;
};

class Recorder final : public Observer {
public:
    explicit Recorder(RecorderOptions options);

    /// What follows is of a simulation of its own that begins where the one before ended.
    void go_on() { shift_ = end_; }
    /// The trace files of all nodes: node-0.iowt and so on.
    Result<bool> write(const std::string& directory) const;

    [[nodiscard]] const RecordedSums& sums() const { return sums_; }
    /// The ranks that are written, in the order in which they are numbered there.
    [[nodiscard]] std::vector<int> kept() const;
    [[nodiscard]] std::int64_t left_out() const { return left_out_; }  ///< events
    [[nodiscard]] Seconds end() const { return end_; }

    void opened(bool writes, Seconds begin, const std::vector<Seconds>& ends) override;
    void calls(std::int64_t call, const planner::Plan& plan, const layout::AccessPattern& pattern) override;
    void handed(int rank, planner::Turn turn, std::int64_t bytes) override;
    void moved(const Moved& operation) override;
    void returned(int rank, std::int64_t call, Seconds end) override;
    void closed(bool writes, Seconds began, Seconds end) override;

private:
    friend class NodeOfTrace;
    enum class What : std::uint8_t { open, call, operation, sync, close };
    struct Entry {
        What what = What::open;
        bool writes = false;
        std::uint32_t shape = 0;  ///< of a call: index into `shapes_`
        std::int64_t file = 0;
        std::int64_t offset = 0, bytes = 0;
        Seconds begin = 0, end = 0;
    };
    struct Rank {
        int rank = 0;
        Seconds free_at = 0;  ///< when its last call ended
        std::uint32_t shape = 0;
        std::int64_t offset = 0, asked = 0;  ///< of the call under way
        bool in_call = false;
        std::int64_t handed_bytes = 0, messages = 0, rounds = 0;
        std::vector<Entry> entries;  ///< operations stand before the call that they are of
    };
    /// Pieces of a call, from its first byte on; shape 0 is one piece, and of shape 1 the pieces are not known.
    using Shape = std::vector<std::pair<std::int64_t, std::int64_t>>;

    Rank* kept_rank(int rank);
    std::uint32_t shape_of(const layout::AccessPattern& pattern, int rank, std::int64_t& offset);
    void keep(Rank& rank, const Entry& entry);

    RecorderOptions options_;
    std::vector<std::int32_t> places_;  ///< of each rank in `ranks_`, -1: not kept
    std::vector<Rank> ranks_;
    std::map<Shape, std::uint32_t> shapes_;
    planner::Topology topology_;
    RecordedSums sums_;
    Seconds shift_ = 0, end_ = 0;
    bool writes_ = true, exchanges_ = false, first_call_ = true;
    std::int64_t events_ = 0, left_out_ = 0;
};

}  // namespace ioweir::sim
