// Ranks divided into workers and delegates (rbIO), and the sets that workers hand over. Source: Liu et al., section 2.2. A delegate is a rank that does nothing else, or a
// thread of a rank that works, too (as the paper's section 4 says of others' designs, where the operating system has threads).
// What does not live here: which rank serves which (planner/delegates.hpp), messages (hand_over.hpp, delegate.hpp), files (set_file.hpp).
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "partition/hand_over.hpp"
#include "partition/passage.hpp"
#include "partition/set_file.hpp"
#include "planner/delegates.hpp"

namespace ioweir::partition {

class Delegate;

class Service {
public:
    /// Collective over `comm`. delegates: 1 to half of the ranks, as threads to all of them; 0: as ioweir.h says.
    [[nodiscard]] static std::optional<Failure> split(MPI_Comm comm, std::int64_t delegates, MPI_Info info,
                                                      std::unique_ptr<Service>& made);
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    [[nodiscard]] bool is_delegate() const { return is_delegate_; }
    /// Of the workers, on workers; freed with the service.
    [[nodiscard]] MPI_Comm workers() const { return workers_; }
    [[nodiscard]] std::int64_t delegates() const { return groups_.delegates; }
    [[nodiscard]] const ServiceOptions& options() const { return options_; }

    /// On delegates: until all workers have left. Collective over them.
    void serve();
    /// On workers: until the storage has all sets that this one has ended. What failed first since it was last told.
    [[nodiscard]] std::optional<Failure> wait();
    /// On workers: no more sets. What wait() says.
    [[nodiscard]] std::optional<Failure> leave();

    HandOver& hand_over() { return *hand_over_; }
    /// Numbers of sets, the same on all workers, for they begin them together.
    [[nodiscard]] std::int64_t begin_set() { return begun_++; }
    void end_set() { ++ended_; }
    [[nodiscard]] bool has_open_set() const { return ended_ < begun_; }

private:
    Service(const Channels& channels, planner::DelegateGroups groups, ServiceOptions options);
    /// What serving and handing over take of the system, before any worker counts on it. Local.
    [[nodiscard]] std::optional<Failure> prepare();

    Channels channels_;
    planner::DelegateGroups groups_;
    ServiceOptions options_;
    bool is_delegate_ = false;            ///< and nothing else
    int delegate_rank_ = 0;               ///< of this rank's group
    std::vector<int> served_;             ///< on delegates and ranks with one: ranks of workers
    MPI_Comm workers_ = MPI_COMM_NULL;    ///< on workers: all of them in the order of their delegates
    MPI_Comm delegates_ = MPI_COMM_NULL;  ///< where `served_` is: all such ranks
    std::unique_ptr<Passage> passage_;    ///< to this rank's own thread, if that is its delegate
    std::unique_ptr<HandOver> hand_over_;
    std::unique_ptr<Delegate> delegate_;  ///< where `served_` is, until it has served
    std::promise<bool> all_are_prepared_;
    std::thread thread_;
    bool gone_ = false;
    std::int64_t begun_ = 0, ended_ = 0;
};

/// A set that a worker writes through its delegate.
class HandedSet final : public SetWriter {
public:
    /// Collective over the workers. files 0: one for each delegate.
    [[nodiscard]] static std::optional<Failure> create(Service& service, const Wanted& wanted, MPI_Info info,
                                                       std::unique_ptr<HandedSet>& made);
    /// Local. Also an earlier set's failure, if it was not told yet.
    [[nodiscard]] std::optional<Failure> write(std::int64_t field, std::int64_t part, const BlockHeader& header,
                                               const void* items, std::optional<Failure> mine) override;
    /// Local.
    [[nodiscard]] std::optional<Failure> close() override { return end(false); }
    void abandon() override { (void)end(true); }

    [[nodiscard]] const WriteFigures& figures() const override { return figures_; }
    [[nodiscard]] const std::vector<std::string>& fields() const override { return wanted_.fields; }
    [[nodiscard]] std::int64_t parts() const override { return wanted_.parts; }
    [[nodiscard]] std::int64_t global_part(std::int64_t part) const override { return first_part_ + part + 1; }
    [[nodiscard]] std::int64_t step() const override { return wanted_.step; }
    [[nodiscard]] std::int64_t files() const override { return wanted_.files; }
    [[nodiscard]] std::int64_t all_parts() const override { return all_parts_; }

private:
    /// `given_up`: the set shall not appear.
    [[nodiscard]] std::optional<Failure> end(bool given_up);
    HandedSet(Service& service, Wanted wanted) : service_(service), wanted_(std::move(wanted)) {}

    Service& service_;
    Wanted wanted_;
    std::int64_t number_ = 0, blocks_ = 0, first_part_ = 0, all_parts_ = 0;
    std::optional<Failure> failure_;  ///< the first one of this worker's
    WriteFigures figures_;
};

}  // namespace ioweir::partition
