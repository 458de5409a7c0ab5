// mapping shared, writers aggregators, domains even, order sequential: two-phase I/O as ROMIO does it on a file system it knows
// nothing about (Thakur, Gropp, Lusk 1999; adio/common/ad_aggregate.c, ADIOI_Calc_file_domains).
//
// The region from the first to the last byte that any rank touches is cut into as many equal domains as there are aggregators,
// and each domain into windows of at most the buffer. In round r an aggregator takes from every rank what lies in window r of its
// domain, and moves it.
//
// Example: bytes 0 to 99, 3 aggregators, buffer 20: domains of ceil(100 / 3) = 34 bytes: [0, 34), [34, 68), [68, 100); windows
// [0, 20), [20, 34) and so on; 2 rounds.
//
// Departures from ROMIO, all of which move the same bytes: windows count from the start of the domain instead of the first byte
// requested in it (known to every rank without another exchange); holes are never read and written back, so only requested bytes
// move; aggregators are spread evenly over the ranks instead of one a node.
// What does not live here: domains at stripe boundaries (strategies of their own).
#include <algorithm>

#include "base/checked.hpp"
#include "planner/strategies/strategies.hpp"

namespace ioweir::planner {

namespace {

using layout::AccessPattern;
using layout::Extent;
using layout::ExtentList;
using layout::ExtentVisitor;

// ROMIO's cb_buffer_size, ADIOI_CB_BUFFER_SIZE_DFLT.
constexpr std::int64_t default_buffer_bytes = 16 * 1024 * 1024;

class EvenSchedule final : public Schedule {
public:
    EvenSchedule(Extent region, int ranks, std::int64_t writers, std::int64_t buffer_bytes)
        : region_(region),
          ranks_(ranks),
          writers_(writers),
          buffer_bytes_(buffer_bytes),
          domain_bytes_(std::max<std::int64_t>(1, ceil_divide(region.length, writers))) {}

    [[nodiscard]] std::int64_t writers() const override { return writers_; }

    // Spread evenly: 2 writers of 4 ranks are ranks 0 and 2. Both factors are below 2^31.
    [[nodiscard]] int writer_rank(std::int64_t writer) const override {
        return static_cast<int>(writer * ranks_ / writers_);
    }

    [[nodiscard]] std::int64_t rounds(std::int64_t writer) const override {
        return ceil_divide(domain(writer).length, buffer_bytes_);
    }

    void visit_operations(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                          ExtentVisitor visitor) const override {
        const Extent here = window(writer, round);
        if (here.empty()) return;
        ExtentList all;
        pattern.visit_ranks(here, [&](int rank) {
            pattern.visit(rank, here, [&](Extent extent) { layout::append_joining(all, extent); });
        });
        layout::normalize(all);
        for (const Extent& extent : all) visitor(extent);
    }

    void visit_messages(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                        MessageVisitor visitor) const override {
        const Extent here = window(writer, round);
        if (here.empty()) return;
        pattern.visit_ranks(here, [&](int rank) { visit_message(pattern, rank, writer, here, visitor); });
    }

    void visit_sends(const AccessPattern& pattern, int rank, std::int64_t round,
                     MessageVisitor visitor) const override {
        const Extent own = layout::intersect(pattern.rank_bounds(rank), region_);
        if (own.empty()) return;
        const std::int64_t first = (own.offset - region_.offset) / domain_bytes_;
        const std::int64_t last = (own.end() - 1 - region_.offset) / domain_bytes_;
        for (std::int64_t writer = first; writer <= last; ++writer) {
            const Extent here = layout::intersect(window(writer, round), own);
            if (!here.empty()) visit_message(pattern, rank, writer, here, visitor);
        }
    }

private:
    static void visit_message(const AccessPattern& pattern, int rank, std::int64_t writer, Extent window,
                              MessageVisitor visitor) {
        const ExtentList extents = layout::collect(pattern, rank, window);
        if (!extents.empty()) visitor(Message{rank, writer, extents});
    }

    [[nodiscard]] Extent domain(std::int64_t writer) const { return part(region_, writer, domain_bytes_); }
    [[nodiscard]] Extent window(std::int64_t writer, std::int64_t round) const {
        return part(domain(writer), round, buffer_bytes_);
    }

    /// Part `index` of `whole` cut into parts of `part_bytes`; empty behind the last one. The product cannot overflow, because
    /// an index that would is behind the last part.
    static Extent part(Extent whole, std::int64_t index, std::int64_t part_bytes) {
        if (index >= ceil_divide(whole.length, part_bytes)) return {whole.end(), 0};
        const std::int64_t begin = index * part_bytes;
        return {whole.offset + begin, std::min(part_bytes, whole.length - begin)};
    }

    Extent region_;
    int ranks_;
    std::int64_t writers_;
    std::int64_t buffer_bytes_;
    std::int64_t domain_bytes_;
};

bool serves(const Strategy& strategy) {
    return strategy.mapping.kind == MappingKind::shared && strategy.writers.kind == WritersKind::aggregators &&
           strategy.domains == Domains::even && strategy.order == Order::sequential;
}

Result<Plan> make(const PlanRequest& request) {
    const std::int64_t ranks = request.pattern.ranks();
    Plan plan{request.strategy, request.strategy.buffer_bytes, {}, nullptr};
    if (plan.buffer_bytes == 0) {
        plan.buffer_bytes = default_buffer_bytes;
        plan.remarks.emplace_back("no buffer given: 16 MiB, as ROMIO's cb_buffer_size");
    }
    std::int64_t writers = request.strategy.writers.count;
    if (writers == 0) {
        writers = std::min(ranks, request.layout.stripe_count());
        plan.remarks.push_back("aggregators:auto: one a storage target, " + std::to_string(writers));
    } else if (writers > ranks) {
        plan.remarks.push_back(std::to_string(writers) + " aggregators asked for, but there are " +
                               std::to_string(ranks) + " ranks: each is one");
        writers = ranks;
    }
    plan.schedule =
        std::make_shared<EvenSchedule>(request.pattern.bounds(), request.pattern.ranks(), writers, plan.buffer_bytes);
    return plan;
}

}  // namespace

constinit const StrategyEntry aggregators_even_strategy{
    "aggregators, even, sequential",
    "some ranks collect equal parts of the touched region and move them buffer by buffer", serves, make};

}  // namespace ioweir::planner
