// For tests only: plans written out as tables, so that they can be damaged, and an independent judge of plans that executes them
// byte by byte.
// What does not live here: anything that is linked into the libraries.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <vector>

#include "layout/core/testing.hpp"
#include "planner/plan.hpp"

namespace ioweir::planner::testing {

using layout::AccessPattern;
using layout::Extent;
using layout::ExtentList;

/// What one writer does in one round.
struct Cell {
    ExtentList operations;
    std::map<int, ExtentList> messages;  ///< by rank
    friend bool operator==(const Cell&, const Cell&) = default;
};

/// A schedule as a table. Ranks send what the writers expect, except for `forgotten_by_sender`.
class TableSchedule final : public Schedule {
public:
    std::vector<int> writer_ranks;
    std::vector<std::vector<Cell>> cells;  ///< by writer, then round
    int forgotten_by_sender = -1;          ///< a rank that sends nothing, although writers expect it to

    [[nodiscard]] std::int64_t writers() const override { return static_cast<std::int64_t>(writer_ranks.size()); }
    [[nodiscard]] int writer_rank(std::int64_t writer) const override {
        return writer_ranks[static_cast<std::size_t>(writer)];
    }
    [[nodiscard]] std::int64_t rounds(std::int64_t writer) const override {
        return static_cast<std::int64_t>(cells[static_cast<std::size_t>(writer)].size());
    }
    void visit_operations(const AccessPattern&, std::int64_t writer, std::int64_t round,
                          layout::ExtentVisitor visitor) const override {
        for (const Extent& extent : cell(writer, round).operations) visitor(extent);
    }
    void visit_messages(const AccessPattern&, std::int64_t writer, std::int64_t round,
                        MessageVisitor visitor) const override {
        for (const auto& [rank, extents] : cell(writer, round).messages) visitor(Message{rank, writer, extents});
    }
    void visit_sends(const AccessPattern&, int rank, std::int64_t round, MessageVisitor visitor) const override {
        if (rank == forgotten_by_sender) return;
        for (std::int64_t writer = 0; writer < writers(); ++writer) {
            if (round >= rounds(writer)) continue;
            const Cell& here = cell(writer, round);
            if (const auto found = here.messages.find(rank); found != here.messages.end()) {
                visitor(Message{rank, writer, found->second});
            }
        }
    }

private:
    [[nodiscard]] const Cell& cell(std::int64_t writer, std::int64_t round) const {
        return cells[static_cast<std::size_t>(writer)].at(static_cast<std::size_t>(round));
    }
};

inline TableSchedule table_of(const Plan& plan, const AccessPattern& pattern) {
    TableSchedule table;
    for (std::int64_t writer = 0; writer < plan.schedule->writers(); ++writer) {
        table.writer_ranks.push_back(plan.schedule->writer_rank(writer));
        auto& rounds = table.cells.emplace_back();
        for (std::int64_t round = 0; round < plan.schedule->rounds(writer); ++round) {
            Cell& cell = rounds.emplace_back();
            plan.schedule->visit_operations(pattern, writer, round,
                                            [&](Extent extent) { cell.operations.push_back(extent); });
            plan.schedule->visit_messages(pattern, writer, round, [&](const Message& message) {
                cell.messages[message.rank].assign(message.extents.begin(), message.extents.end());
            });
        }
    }
    return table;
}

inline Plan with_schedule(const Plan& plan, TableSchedule table) {
    Plan changed = plan;
    changed.schedule = std::make_shared<TableSchedule>(std::move(table));
    return changed;
}

inline Plan must_plan(const AccessPattern& pattern, const Strategy& strategy,
                      const layout::StripeLayout& layout = layout::StripeLayout::unstriped(),
                      const layout::TargetProfile& targets = {}) {
    auto made = plan(pattern, layout, targets, strategy);
    if (!made) throw std::runtime_error(made.error().message());
    return made.take();
}

/// Executes a plan byte by byte and judges the outcome; shares no code with verify(). For files of a few hundred bytes.
class Judge {
public:
    Judge(const Plan& plan, const AccessPattern& pattern) : plan_(plan), pattern_(pattern) {
        for (int rank = 0; rank < pattern.ranks(); ++rank) {
            pattern.visit(rank, layout::whole_file, [&](Extent extent) {
                for (std::int64_t byte = extent.offset; byte < extent.end(); ++byte) {
                    wanted_[rank].insert(byte);
                    ++askers_[byte];
                }
            });
        }
    }

    [[nodiscard]] bool approves() {
        for (std::int64_t writer = 0; writer < plan_.schedule->writers(); ++writer) {
            std::set<std::int64_t> moved_by_writer;
            for (std::int64_t round = 0; round < plan_.schedule->rounds(writer); ++round) {
                if (!execute(writer, round, moved_by_writer)) return false;
                if (plan_.strategy.writers.kind == WritersKind::behind) moved_by_writer.clear();  // a rank a round
            }
        }
        bool by_itself = each_rank_by_itself(plan_.strategy);
        for (std::int64_t writer = 0; writer < plan_.schedule->writers(); ++writer)
            by_itself = by_itself || !plan_.schedule->has_buffer(writer);  // aggregators of few pieces far apart
        for (const auto& [byte, times] : moved_) {
            const int allowed = by_itself ? askers_[byte] : std::min(askers_[byte], 1);
            if (times > allowed) return false;
        }
        return arrived_ == wanted_;
    }

private:
    bool execute(std::int64_t writer, std::int64_t round, std::set<std::int64_t>& moved_by_writer) {
        std::map<std::int64_t, std::set<int>> buffer;  // which ranks have handed in each byte
        bool sound = true;
        plan_.schedule->visit_messages(pattern_, writer, round, [&](const Message& message) {
            for (const Extent& extent : message.extents) {
                for (std::int64_t byte = extent.offset; byte < extent.end(); ++byte) {
                    sound = sound && wanted_[message.rank].contains(byte);
                    buffer[byte].insert(message.rank);
                }
            }
        });
        std::set<std::int64_t> moved_now;
        plan_.schedule->visit_operations(pattern_, writer, round, [&](Extent extent) {
            for (std::int64_t byte = extent.offset; byte < extent.end(); ++byte) {
                sound = sound && buffer.contains(byte) && moved_by_writer.insert(byte).second;
                moved_now.insert(byte);
                ++moved_[byte];
                for (const int rank : buffer[byte]) sound = sound && arrived_[rank].insert(byte).second;
            }
        });
        const bool all_used = moved_now.size() == buffer.size();
        const bool fits = plan_.buffer_bytes == 0 || static_cast<std::int64_t>(moved_now.size()) <= plan_.buffer_bytes;
        return sound && all_used && fits;
    }

    const Plan& plan_;
    const AccessPattern& pattern_;
    std::map<int, std::set<std::int64_t>> wanted_;
    std::map<int, std::set<std::int64_t>> arrived_;
    std::map<std::int64_t, int> askers_;
    std::map<std::int64_t, int> moved_;
};

}  // namespace ioweir::planner::testing
