// The counted calls of one unit after the other, as the trace has them, for the table of calls: all of them, or those whose outermost
// call begins in a stretch of the run. These have the times that they had if the run consisted of the stretches.
// What does not live here: what is around a call, and with whom it is one (call_table.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/call_table.hpp"
#include "analysis/kinds.hpp"
#include "analysis/stretches.hpp"
#include "base/large_pages.hpp"
#include "format/reader.hpp"

namespace ioweir::analysis {

/// What a row of the table is made of.
struct GatheredCall {
    std::int64_t start, duration, offset, bytes;
    std::int64_t collective_number;  ///< see number_collectives; -1: has none
    std::uint32_t thread, sequence, parent, file, access;
    std::uint16_t function;
    std::uint8_t origin;
    bool failed;
};

class GatheredCalls {
public:
    using Calls = CallTable::Column<GatheredCall>;

    /// `most`: no more calls than these are gathered; 0: there is no limit.
    GatheredCalls(const format::TraceFiles& files, const CallQuestion& question, const std::vector<FunctionKind>& kinds,
                  const Stretches& stretches, std::uint64_t most);

    /// From now on calls() and waits() are those of the unit with these threads, each by start.
    void gather(const std::vector<std::uint32_t>& threads);

    [[nodiscard]] const Calls& calls() const { return calls_; }
    [[nodiscard]] const Calls& waits() const { return waits_; }
    /// Whether calls in the stretches were left out, for the limit's sake.
    [[nodiscard]] bool left_out() const { return left_out_; }
    /// Nanoseconds in outermost calls: of all, and of those gathered.
    [[nodiscard]] std::int64_t all_ns() const { return all_ns_; }
    [[nodiscard]] std::int64_t gathered_ns() const { return gathered_ns_; }

private:
    /// A collective MPI-IO call in no other MPI-IO call, gathered or not.
    struct Collective {
        std::int64_t start;
        std::uint32_t file;
        std::int64_t number;
    };

    void gather_thread(std::uint32_t thread);
    [[nodiscard]] bool counts(const format::Event& event) const;
    [[nodiscard]] GatheredCall call_of(const format::Event& event) const;
    void decide(std::int64_t root_start);
    void find_collectives();
    void number_collectives();
    /// Where its outermost call begins in this stretch.
    void add(GatheredCall call, std::int64_t stretch);

    const format::TraceFiles& files_;
    const CallQuestion& question_;
    const std::vector<FunctionKind>& kinds_;
    const Stretches& stretches_;
    std::uint64_t most_;
    std::size_t mpi_;
    std::size_t wait_;
    Calls calls_;
    Calls waits_;
    Calls undecided_;  ///< of a thread: in an outermost call that has not come yet, for it ends after them
    std::vector<Collective> collectives_;  ///< of the unit
    std::vector<std::int64_t> made_;       ///< collective calls of the unit, by file
    std::size_t stretch_ = 0;              ///< where the last call was
    std::uint64_t gathered_ = 0;
    std::int64_t all_ns_ = 0;
    std::int64_t gathered_ns_ = 0;
    bool left_out_ = false;
};

}  // namespace ioweir::analysis
