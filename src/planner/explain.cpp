// explain(): a plan as text for a person (see plan.hpp). Ranks count from 0 as in MPI, rounds from 1.
#include <algorithm>
#include <string>
#include <vector>

#include "base/size_text.hpp"
#include "planner/plan.hpp"

namespace ioweir::planner {

namespace {

using layout::AccessPattern;
using layout::Extent;
using layout::ExtentList;

std::string count_text(std::int64_t count, const std::string& one, const std::string& many) {
    return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string range_text(Extent extent) {
    return "[" + std::to_string(extent.offset) + ", " + std::to_string(extent.end()) + ")";
}

class Explainer {
public:
    Explainer(const Plan& plan, const AccessPattern& pattern, const ExplainLimits& limits)
        : plan_(plan), schedule_(*plan.schedule), pattern_(pattern), limits_(limits) {}

    std::string run() {
        line("strategy  " + to_text(plan_.strategy));
        for (const std::string& remark : plan_.remarks) line("          " + remark);
        const auto verified = verify(plan_, pattern_);
        if (verified) {
            summarise(verified.value());
        } else {
            line("WRONG     " + verified.error().message());
        }
        std::int64_t shown = 0;
        std::int64_t left_out = 0;
        for (std::int64_t writer = 0; writer < schedule_.writers(); ++writer) {
            if (schedule_.rounds(writer) == 0 || !works(writer)) continue;
            if (shown < limits_.writers) {
                ++shown;
                explain_writer(writer);
            } else {
                ++left_out;
            }
        }
        if (left_out > 0) line("\n... and " + count_text(left_out, "more writer", "more writers"));
        return text_;
    }

private:
    void line(const std::string& words) { text_ += words + "\n"; }

    void summarise(const PlanSummary& summary) {
        const Extent region = pattern_.bounds();
        line("request   " + count_text(pattern_.ranks(), "rank", "ranks") + ", " +
             rough_size_text(summary.bytes_requested) + (region.empty() ? "" : " in file bytes " + range_text(region)));
        line("writers   " + count_text(summary.writers, "rank", "ranks") + ", " +
             count_text(summary.rounds, "round", "rounds") + ", at most " +
             rough_size_text(summary.most_bytes_of_a_round) + " in a round");
        line("storage   " + count_text(summary.operations, "operation", "operations") + ", " +
             rough_size_text(summary.bytes_moved));
        line("exchange  " + rough_size_text(summary.bytes_between_ranks) + " between ranks, in " +
             count_text(summary.messages, "message", "messages") + " including those of a rank to itself");
        line("verified  every requested byte is moved exactly as asked, and no other byte");
    }

    /// Stops looking at the first round with work: the number of rounds can be large, the first is seldom empty.
    [[nodiscard]] bool works(std::int64_t writer) const {
        bool found = false;
        for (std::int64_t round = 0; round < schedule_.rounds(writer) && !found; ++round) {
            schedule_.visit_operations(pattern_, writer, round, [&](Extent) { found = true; });
        }
        return found;
    }

    void explain_writer(std::int64_t writer) {
        line("\nrank " + std::to_string(schedule_.writer_rank(writer)));
        std::int64_t shown = 0;
        std::int64_t left_out = 0;
        for (std::int64_t round = 0; round < schedule_.rounds(writer); ++round) {
            if (shown < limits_.rounds) {
                shown += explain_round(writer, round) ? 1 : 0;
            } else {
                ++left_out;
            }
        }
        if (left_out > 0) line("  ... and " + count_text(left_out, "more round", "more rounds"));
    }

    /// False for a round without work, which is not printed.
    bool explain_round(std::int64_t writer, std::int64_t round) {
        ExtentList operations;
        schedule_.visit_operations(pattern_, writer, round, [&](Extent extent) { operations.push_back(extent); });
        if (operations.empty()) return false;
        std::string words = "  round " + std::to_string(round + 1) + ": " +
                            rough_size_text(layout::total_bytes(operations).value_or(0)) + " in " +
                            count_text(static_cast<std::int64_t>(operations.size()), "operation", "operations") + " ";
        for (std::size_t i = 0; i < operations.size(); ++i) {
            if (static_cast<std::int64_t>(i) == limits_.operations) {
                words += " ... to " + std::to_string(operations.back().end());
                break;
            }
            words += (i == 0 ? "" : " ") + range_text(operations[i]);
        }
        line(words + sources(writer, round));
        return true;
    }

    [[nodiscard]] std::string sources(std::int64_t writer, std::int64_t round) const {
        std::string words;
        std::int64_t shown = 0;
        std::int64_t left_out = 0;
        bool only_itself = true;
        schedule_.visit_messages(pattern_, writer, round, [&](const Message& message) {
            only_itself = only_itself && message.rank == schedule_.writer_rank(writer);
            if (shown == limits_.ranks) {
                ++left_out;
                return;
            }
            words += (shown == 0 ? "" : ", ") + std::to_string(message.rank) + " (" +
                     rough_size_text(layout::total_bytes(message.extents).value_or(0)) + ")";
            ++shown;
        });
        if (only_itself) return ", its own";
        if (left_out > 0) words += " and " + std::to_string(left_out) + " more";
        return ", from ranks " + words;
    }

    const Plan& plan_;
    const Schedule& schedule_;
    const AccessPattern& pattern_;
    const ExplainLimits& limits_;
    std::string text_;
};

}  // namespace

std::string explain(const Plan& plan, const AccessPattern& pattern, const ExplainLimits& limits) {
    return Explainer(plan, pattern, limits).run();
}

}  // namespace ioweir::planner
