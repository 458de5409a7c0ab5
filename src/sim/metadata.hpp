// Metadata: what opening costs. Requests of processes wait in a queue for the first of the servers that is free, first come first served (an
// M/G/c queue whose arrivals are the program's own: Kleinrock 1975, chapter 3); each takes its kind's time, which varies. Making a name changes
// its directory, which one server does at a time, whatever number of servers there are: files of one directory are made one after the other
// (Alam et al. 2011, "Parallel I/O and the metadata wall": creating in one directory does not scale with clients). A process that opens a file
// which it makes itself asks for that first, then opens it, then asks for its attributes; it has one request under way.
// Limits: no caches of names at clients, no locks on directories that clients hold, nothing grows slower with the size of a directory, closing
// and removing are free; other jobs ask for nothing.
// What does not live here: which process makes which file (simulation.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/events.hpp"
#include "sim/machine.hpp"
#include "sim/random.hpp"

namespace ioweir::sim {

/// What the servers have done.
struct MetadataWork {
    std::int64_t requests = 0;
    Seconds wait_s = 0;     ///< in queues, over all requests
    Seconds longest_s = 0;  ///< the longest that one process took to open
};

class Metadata final : public Actor {
public:
    Metadata(Events& events, const Machine& machine, std::uint64_t seed)
        : events_(events),
          figures_(machine.metadata),
          latency_(machine.fabric.latency_s),
          stream_(seed, Part::metadata, 0),
          servers_(static_cast<std::size_t>(machine.metadata.servers)) {}

    /// All processes open: the first `makers` of them make a file of their own. `opened` when the last has it open.
    void open_all(std::int64_t makers, std::int64_t processes, Callback opened) {
        opened_ = opened;
        began_ = events_.now();
        if (!costs_time() || processes == 0) return opened();
        unopened_ = processes;
        opened_at_.assign(static_cast<std::size_t>(processes), began_);
        processes_ = processes;
        makers_ = unmade_ = makers;
        // Files that others share are there before those open them.
        const std::int64_t first = makers > 0 ? makers : processes;
        for (std::int64_t process = 0; process < first; ++process) begin(process);
    }
    [[nodiscard]] const MetadataWork& work() const { return work_; }
    /// When each process had it open; none: at once.
    [[nodiscard]] const std::vector<Seconds>& opened_at() const { return opened_at_; }

    void happen(std::uint32_t what, std::uint32_t which) override {
        switch (what) {
            case made:
                if (--unmade_ == 0)
                    for (std::int64_t process = makers_; process < processes_; ++process) begin(process);
                return ask(opened_it, which, figures_.open_s, false);
            case opened_it:
                if (figures_.stat_s > 0) return ask(knows_it, which, figures_.stat_s, false);
                [[fallthrough]];
            default:
                opened_at_[which] = events_.now();
                work_.longest_s = std::max(work_.longest_s, events_.now() - began_);
                if (--unopened_ == 0) opened_();
        }
    }

private:
    enum What : std::uint32_t { made, opened_it, knows_it };

    [[nodiscard]] bool costs_time() const {
        return figures_.open_s > 0 || figures_.create_s > 0 || figures_.stat_s > 0;
    }

    void begin(std::int64_t process) {
        const auto which = static_cast<std::uint32_t>(process);
        if (process < makers_) return ask(made, which, figures_.create_s, true);
        ask(opened_it, which, figures_.open_s, false);
    }

    /// One request: there, its turn, its time, and back.
    void ask(What then, std::uint32_t which, Seconds mean, bool in_directory) {
        events_.pass();
        const Seconds duration = mean * stream_.lognormal(figures_.jitter);
        const Seconds comes = events_.now() + latency_;
        Line& server = in_directory
                           ? directory_
                           : *std::min_element(servers_.begin(), servers_.end(),
                                               [](const Line& a, const Line& b) { return a.free_at() < b.free_at(); });
        const Seconds over = server.serve(comes, duration);
        ++work_.requests;
        work_.wait_s += over - duration - comes;
        events_.at(over + latency_, {this, then, which});
    }

    Events& events_;
    MetadataFigures figures_;
    Seconds latency_;
    RandomStream stream_;
    std::vector<Line> servers_;
    Line directory_;
    Callback opened_;
    Seconds began_ = 0;
    std::int64_t makers_ = 0, processes_ = 0, unopened_ = 0, unmade_ = 0;
    MetadataWork work_;
    std::vector<Seconds> opened_at_;
};

}  // namespace ioweir::sim
