// Collective calls that all ranks of a file make together, through an exchange.
// What does not live here: the exchange itself (exchange.hpp), single ranks' calls (call.cpp).
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/calls/agreement.hpp"
#include "exchange/exchange.hpp"
#include "exchange/group.hpp"
#include "planner/division.hpp"
#include "planner/strategy.hpp"

namespace ioweir::engine {

using namespace exchange;

class WriteBehindQueue;

/// The ranks of a communicator and what they exchange through: one for all files that they open (process_groups.hpp).
struct Team {
    std::unique_ptr<Group> group;
    std::unique_ptr<Exchange> exchange;
    std::unique_ptr<Agreement> agreement;                        ///< on the call under way
    std::vector<std::shared_ptr<WriteBehindQueue>> idle_queues;  ///< of files that are closed, for the next ones

    /// A way to divide the ranks that calls have asked for, and this rank's part of the team if it has been made.
    struct Parted {
        planner::Division division;
        std::int64_t times_seen = 0;
        std::shared_ptr<Team> part;
    };
    static constexpr std::size_t most_divisions = 4;  ///< communicators are few: MPICH has about 2,000
    std::array<Parted, most_divisions> parted;
    std::size_t next_parted = 0;  ///< the next to be given up
    std::unique_ptr<planner::Divider> divider;

    /// Collective over the group. The part of this rank when a division is worth it, else null, on all ranks alike: communicators are
    /// made for the second call that would do with it, and only for a few divisions.
    [[nodiscard]] std::shared_ptr<Team> part_for(const planner::Division& division);
    /// Collective: frees the communicators.
    void free();
};

/// Collective over `comm`. Null on every rank, and why, when its ranks cannot exchange.
[[nodiscard]] std::shared_ptr<Team> make_team(MPI_Comm comm, std::string& why);

/// Of a file: the part of the team that makes its calls for the time being. Only what all ranks of the file know alike.
struct Subgroup {
    std::shared_ptr<Team> part;      ///< null: all ranks together
    std::int64_t writers = 0;        ///< of the part
    std::int64_t all_writers = 0;    ///< of all ranks together; 0: not known yet
    std::int64_t calls_left = 0;     ///< that need no meeting of all ranks
    std::int64_t undivided_at = -1;  ///< Agreement::changes() when what all ranks asked for was not worth a division
    // Where the planner has each rank move its own bytes, as `auto` does with few pieces:
    std::int64_t alone_left = 0;      ///< calls that do so without any meeting
    std::int64_t alone_meetings = 0;  ///< that have chosen so, one after the other

    /// After the view was set: all ranks look at their requests again.
    void begin_view() {
        calls_left = alone_left = alone_meetings = 0;
        undivided_at = -1;
    }
};

/// A collective write in parts, one behind the other in the file: in between something may change. Every rank alike.
class Parts {
public:
    virtual ~Parts() = default;
    Parts() = default;
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    /// Bytes of the file that the next part takes, at least 1, if as many again are left behind it.
    [[nodiscard]] virtual std::int64_t bytes() const = 0;
    /// How it goes on. `elsewhere`: to other places than before.
    struct Next {
        planner::Strategy strategy;
        bool elsewhere = false;
    };
    /// Collective, after a part that is not the last.
    [[nodiscard]] virtual Next go_on() = 0;
};

struct TogetherOutcome {
    bool done = false;        ///< false on every rank: no exchange takes place in this call
    bool each_alone = false;  ///< because the planner chose so; else `refusal` says why none is possible
    std::string refusal;
    Outcome outcome;
    ExchangeFigures figures;
    std::int64_t rounds = 0;
    bool in_subgroup = false;  ///< without a meeting of all ranks
};

/// Collective over the team, or over this rank's part of it: where the ranks' parts of the file lie one behind the other, only every
/// so many calls bring all of them together. `io.memory` null: this rank has no bytes, or sees to them itself. `parts`: null, or
/// how the team's writes are divided.
TogetherOutcome transfer_together(Team& team, const planner::Strategy& strategy, bool writes, const IoRequest& io,
                                  OwnRequest& own, Subgroup& subgroup, Parts* parts = nullptr);

}  // namespace ioweir::engine
