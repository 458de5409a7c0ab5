// verify(): the proof that a plan does what the pattern asks (promises: plan.hpp).
//
// It walks the plan once, writer by writer and round by round. What must hold within one round of one writer is checked there, on
// lists of that round only. What must hold across rounds follows from sums, as long as no two rounds move the same byte: messages
// then cannot repeat a byte, so a rank whose delivered bytes add up to its requested bytes has delivered each exactly once. Bytes
// that several ranks share under writers = everyone are moved more than once; for those the messages are compared one by one.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.hpp"
#include "planner/plan.hpp"

namespace ioweir::planner {

namespace {

using layout::AccessPattern;
using layout::Extent;
using layout::ExtentList;
using layout::ExtentSpan;

constexpr const char* remedy = "do not execute this plan: its strategy has a defect";

std::string bytes_text(Extent extent) {
    return "bytes " + std::to_string(extent.offset) + " to " + std::to_string(extent.end() - 1);
}

std::string first_bytes_text(ExtentSpan extents) { return bytes_text(extents.front()); }

/// A hash of one extent of one message. Sums of these do not depend on the order of the messages (finaliser of MurmurHash3).
std::uint64_t fingerprint(const Message& message, std::int64_t round, Extent extent) {
    std::uint64_t hash = 0x9e3779b97f4a7c15U;
    for (const std::int64_t number :
         {std::int64_t{message.rank}, message.writer, round, extent.offset, extent.length}) {
        hash ^= static_cast<std::uint64_t>(number);
        hash ^= hash >> 33;
        hash *= 0xff51afd7ed558ccdU;
        hash ^= hash >> 33;
        hash *= 0xc4ceb9fe1a85ec53U;
        hash ^= hash >> 33;
    }
    return hash;
}

struct Delivery {
    int rank;
    Extent extent;
};

class Verifier {
public:
    Verifier(const Plan& plan, const AccessPattern& pattern)
        : plan_(plan),
          schedule_(*plan.schedule),
          pattern_(pattern),
          delivered_bytes_(static_cast<std::size_t>(pattern.ranks()), 0),
          fingerprints_(static_cast<std::size_t>(pattern.ranks()), 0) {}

    Result<PlanSummary> run() {
        check_writers();
        for (std::int64_t writer = 0; writer < schedule_.writers() && ok(); ++writer) check_writer(writer);
        if (ok()) check_across_writers();
        for (int rank = 0; rank < pattern_.ranks() && ok(); ++rank) check_delivered(rank);
        if (ok()) check_both_sides();
        if (!ok()) return error_;
        return summary_;
    }

private:
    [[nodiscard]] bool ok() const { return error_.what.empty(); }

    void fail(std::string what, std::string value) {
        if (ok()) error_ = Error{std::move(what), std::move(value), remedy};
    }

    [[nodiscard]] static std::string cell(std::int64_t writer, std::int64_t round) {
        return "writer " + std::to_string(writer) + ", round " + std::to_string(round + 1);
    }

    void check_writers() {
        std::vector<int> ranks;
        for (std::int64_t writer = 0; writer < schedule_.writers(); ++writer) {
            ranks.push_back(schedule_.writer_rank(writer));
            if (ranks.back() < 0 || ranks.back() >= pattern_.ranks()) {
                fail("a writer is not one of the ranks",
                     "writer " + std::to_string(writer) + ", rank " + std::to_string(ranks.back()));
            }
        }
        std::sort(ranks.begin(), ranks.end());
        const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
        if (twice != ranks.end()) fail("a rank is two writers", "rank " + std::to_string(*twice));
    }

    void check_writer(std::int64_t writer) {
        ExtentList moved;
        bool busy = false;
        for (std::int64_t round = 0; round < schedule_.rounds(writer) && ok(); ++round) {
            const ExtentList operations = check_operations(writer, round);
            if (ok()) check_messages(writer, round, operations);
            for (const Extent& extent : operations) layout::append_joining(moved, extent);
            busy = busy || !operations.empty();
        }
        if (!ok()) return;
        const bool ranks_share = plan_.strategy.writers.kind == WritersKind::behind;  // a round each
        if (const ExtentList twice = layout::sort_and_find_shared(moved); !twice.empty() && !ranks_share) {
            fail("a writer moves bytes twice", "writer " + std::to_string(writer) + ", " + first_bytes_text(twice));
        }
        ExtentList& file = moved_of_file_[plan_.file(writer)];
        for (const Extent& extent : moved) layout::append_joining(file, extent);
        summary_.writers += busy ? 1 : 0;
        summary_.rounds = std::max(summary_.rounds, schedule_.rounds(writer));
    }

    /// The operations of one round, as a normal list.
    ExtentList check_operations(std::int64_t writer, std::int64_t round) {
        ExtentList operations;
        schedule_.visit_operations(pattern_, writer, round, [&](Extent extent) { operations.push_back(extent); });
        summary_.operations += static_cast<std::int64_t>(operations.size());
        for (const Extent& extent : operations) {
            if (layout::check_extents(ExtentSpan(&extent, 1)) || extent.offset < 0 || extent.empty()) {
                fail("a storage operation is not a range of file bytes",
                     cell(writer, round) + ", offset " + std::to_string(extent.offset) + ", length " +
                         std::to_string(extent.length));
                return {};
            }
        }
        if (const ExtentList twice = layout::sort_and_find_shared(operations); !twice.empty()) {
            fail("a writer moves bytes twice", cell(writer, round) + ", " + first_bytes_text(twice));
        }
        layout::normalize(operations);
        // Disjoint ranges of file bytes cannot add up to more than a file offset holds.
        const std::int64_t bytes = layout::total_bytes(operations).value_or(0);
        summary_.bytes_moved += bytes;
        summary_.most_bytes_of_a_round = std::max(summary_.most_bytes_of_a_round, bytes);
        if (plan_.buffer_bytes > 0 && bytes > plan_.buffer_bytes && schedule_.has_buffer(writer)) {
            fail("a round exceeds the buffer", cell(writer, round) + ", " + std::to_string(bytes) +
                                                   " bytes in a buffer of " + std::to_string(plan_.buffer_bytes));
        }
        return operations;
    }

    void check_messages(std::int64_t writer, std::int64_t round, const ExtentList& operations) {
        ExtentList handed;
        int previous_rank = -1;
        schedule_.visit_messages(pattern_, writer, round, [&](const Message& message) {
            if (message.rank <= previous_rank || message.rank >= pattern_.ranks() || message.writer != writer) {
                fail("messages are not one a rank by rising rank", cell(writer, round) + ", rank " +
                                                                       std::to_string(message.rank) + " after " +
                                                                       std::to_string(previous_rank));
            }
            if (!ok()) return;
            previous_rank = message.rank;
            check_message(message, writer, round, operations);
            handed.insert(handed.end(), message.extents.begin(), message.extents.end());
        });
        if (!ok()) return;
        layout::normalize(handed);
        const ExtentList unfounded = plan_.writes ? layout::subtract(operations, handed) : ExtentList{};
        if (!unfounded.empty()) {
            fail("a writer moves bytes that nobody handed to it",
                 cell(writer, round) + ", " + first_bytes_text(unfounded));
        }
    }

    void check_message(const Message& message, std::int64_t writer, std::int64_t round, const ExtentList& operations) {
        const std::string who = "rank " + std::to_string(message.rank) + " to " + cell(writer, round);
        if (message.extents.empty() || layout::check_extents(message.extents) || !layout::is_normal(message.extents)) {
            fail("a message is not a sorted list of separate file bytes", who);
            return;
        }
        const Extent span = layout::bounds(message.extents);
        const ExtentList asked = layout::collect(pattern_, message.rank, span);
        if (const ExtentList foreign = layout::subtract(message.extents, asked); !foreign.empty()) {
            fail("a message has bytes that its rank did not ask for", who + ", " + first_bytes_text(foreign));
            return;
        }
        if (const ExtentList idle = layout::subtract(message.extents, operations); !idle.empty()) {
            fail("a message goes to a writer that does not move its bytes in that round",
                 who + ", " + first_bytes_text(idle));
            return;
        }
        const std::int64_t bytes = layout::total_bytes(message.extents).value_or(0);
        const auto rank = static_cast<std::size_t>(message.rank);
        delivered_bytes_[rank] += bytes;
        for (const Extent& extent : message.extents) fingerprints_[rank] += fingerprint(message, round, extent);
        ++summary_.messages;
        if (schedule_.writer_rank(writer) != message.rank) summary_.bytes_between_ranks += bytes;
    }

    /// No byte of a file is moved by two writers; shared bytes may be where every rank writes for itself.
    void check_across_writers() {
        for (auto& [file, moved] : moved_of_file_) {
            const ExtentList shared = layout::sort_and_find_shared(moved);
            if (!shared.empty() && ok()) check_shared(file, shared);
        }
    }

    /// A strategy with aggregators has none where it lets each rank move its own bytes.
    [[nodiscard]] bool has_buffers(std::int64_t file) const {
        for (std::int64_t writer = 0; writer < schedule_.writers(); ++writer) {
            if (plan_.file(writer) == file && schedule_.has_buffer(writer)) return true;
        }
        return false;
    }

    void check_shared(std::int64_t file, const ExtentList& shared) {
        if (!each_rank_by_itself(plan_.strategy) && has_buffers(file)) {
            fail("bytes are moved twice", movers_of(file, shared.front()) + ", " + first_bytes_text(shared));
            return;
        }
        std::vector<Delivery> deliveries;
        for_all_messages([&](const Message& message, std::int64_t) {
            if (plan_.file(message.writer) != file) return;
            for (const Extent& extent : layout::intersect(message.extents, ExtentSpan(shared))) {
                deliveries.push_back({message.rank, extent});
            }
        });
        std::sort(deliveries.begin(), deliveries.end(), [](const Delivery& a, const Delivery& b) {
            return std::pair(a.rank, a.extent.offset) < std::pair(b.rank, b.extent.offset);
        });
        for (std::size_t i = 1; i < deliveries.size(); ++i) {
            const Delivery& before = deliveries[i - 1];
            const Delivery& now = deliveries[i];
            const Extent both = layout::intersect(before.extent, now.extent);
            if (before.rank == now.rank && !both.empty()) {
                fail("a rank hands bytes out twice", "rank " + std::to_string(now.rank) + ", " + bytes_text(both));
                return;
            }
        }
    }

    void check_delivered(int rank) {
        const std::int64_t wanted = pattern_.rank_bytes(rank);
        summary_.bytes_requested += wanted;
        if (delivered_bytes_[static_cast<std::size_t>(rank)] == wanted) return;
        ExtentList delivered;
        for_all_messages([&](const Message& message, std::int64_t) {
            if (message.rank == rank) delivered.insert(delivered.end(), message.extents.begin(), message.extents.end());
        });
        layout::normalize(delivered);
        const ExtentList missing = layout::subtract(layout::collect(pattern_, rank), delivered);
        if (missing.empty()) {
            fail("a rank's extents do not add up to its bytes",
                 "rank " + std::to_string(rank) + ", " + std::to_string(wanted) + " bytes");
        } else {
            fail("bytes are never moved", "rank " + std::to_string(rank) + ", " + first_bytes_text(missing));
        }
    }

    void check_both_sides() {
        const std::int64_t rounds = plan_.rounds();
        for (int rank = 0; rank < pattern_.ranks(); ++rank) {
            std::uint64_t& seen_by_writers = fingerprints_[static_cast<std::size_t>(rank)];
            bool foreign = false;
            for (std::int64_t round = 0; round < rounds; ++round) {
                schedule_.visit_sends(pattern_, rank, round, [&](const Message& message) {
                    foreign = foreign || message.rank != rank;
                    for (const Extent& extent : message.extents) seen_by_writers -= fingerprint(message, round, extent);
                });
            }
            if (foreign || seen_by_writers != 0) {
                fail("a rank would send other messages than the writers expect", "rank " + std::to_string(rank));
                return;
            }
        }
    }

    template <typename Visit>
    void for_all_messages(Visit visit) const {
        for (std::int64_t writer = 0; writer < schedule_.writers(); ++writer) {
            for (std::int64_t round = 0; round < schedule_.rounds(writer); ++round) {
                schedule_.visit_messages(pattern_, writer, round,
                                         [&](const Message& message) { visit(message, round); });
            }
        }
    }

    [[nodiscard]] std::string movers_of(std::int64_t file, Extent wanted) const {
        std::string movers;
        for (std::int64_t writer = 0; writer < schedule_.writers(); ++writer) {
            if (plan_.file(writer) != file) continue;
            for (std::int64_t round = 0; round < schedule_.rounds(writer); ++round) {
                bool moves = false;
                schedule_.visit_operations(pattern_, writer, round, [&](Extent extent) {
                    moves = moves || !layout::intersect(extent, wanted).empty();
                });
                if (moves) movers += (movers.empty() ? "" : " and ") + cell(writer, round);
            }
        }
        return movers;
    }

    const Plan& plan_;
    const Schedule& schedule_;
    const AccessPattern& pattern_;
    Error error_;
    PlanSummary summary_;
    std::map<std::int64_t, ExtentList> moved_of_file_;
    std::vector<std::int64_t> delivered_bytes_;  // one a rank
    std::vector<std::uint64_t> fingerprints_;    // one a rank: of its messages as the writers see them
};

}  // namespace

Result<PlanSummary> verify(const Plan& plan, const AccessPattern& pattern) { return Verifier(plan, pattern).run(); }

}  // namespace ioweir::planner
