#include "exchange/group.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>

#include "mpi/node_leaders.hpp"

namespace ioweir::exchange {
namespace {

/// Tests play several nodes on one machine: IOWEIR_TEST_RANKS_PER_NODE = 2 makes a node of every two ranks.
int test_ranks_per_node() {
    const char* text = std::getenv("IOWEIR_TEST_RANKS_PER_NODE");
    return text != nullptr ? std::max(0, std::atoi(text)) : 0;
}

/// Collective over the ranks of a node: are there more of them than processors that they may run on?
bool share_processors(MPI_Comm node) {
    cpu_set_t processors;
    CPU_ZERO(&processors);
    sched_getaffinity(0, sizeof processors,
                      &processors);  // none on error: then it counts as crowded on all of them alike
    PMPI_Allreduce(MPI_IN_PLACE, &processors, static_cast<int>(sizeof processors), MPI_BYTE, MPI_BOR, node);
    int ranks = 1;
    PMPI_Comm_size(node, &ranks);
    return ranks > CPU_COUNT(&processors);
}

}  // namespace

void Sums::join(const Sums& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    added[0] += other.added[0];
    added[1] += other.added[1];
    wrapped += other.wrapped;
    any |= other.any;
}

/// In shared memory: a table and sums for even meetings and for odd ones, because fast ranks come to the next one while slow ones
/// still read.
struct Group::Meeting {
    /// Sums that all ranks of a node join theirs to.
    struct alignas(64) Joined {
        std::atomic<std::int64_t> least, most, added[2];
        std::atomic<std::uint64_t> wrapped, any;

        void set(const Sums& sums) {
            least.store(sums.least, std::memory_order_relaxed);
            most.store(sums.most, std::memory_order_relaxed);
            for (int i = 0; i < 2; ++i) added[i].store(sums.added[i], std::memory_order_relaxed);
            wrapped.store(sums.wrapped, std::memory_order_relaxed);
            any.store(sums.any, std::memory_order_relaxed);
        }
        void join(const Sums& mine) {
            take(least, mine.least, std::less<>());
            take(most, mine.most, std::greater<>());
            for (int i = 0; i < 2; ++i) {
                if (mine.added[i] != 0) added[i].fetch_add(mine.added[i], std::memory_order_relaxed);
            }
            if (mine.wrapped != 0) wrapped.fetch_add(mine.wrapped, std::memory_order_relaxed);
            if (mine.any != 0) any.fetch_or(mine.any, std::memory_order_relaxed);
        }
        [[nodiscard]] Sums get() const {
            Sums sums;
            sums.least = least.load(std::memory_order_relaxed);
            sums.most = most.load(std::memory_order_relaxed);
            for (int i = 0; i < 2; ++i) sums.added[i] = added[i].load(std::memory_order_relaxed);
            sums.wrapped = wrapped.load(std::memory_order_relaxed);
            sums.any = any.load(std::memory_order_relaxed);
            return sums;
        }

    private:
        template <typename Better>
        static void take(std::atomic<std::int64_t>& best, std::int64_t mine, Better better) {
            std::int64_t seen = best.load(std::memory_order_relaxed);
            while (better(mine, seen) && !best.compare_exchange_weak(seen, mine, std::memory_order_relaxed)) {
            }
        }
    };

    alignas(64) SharedWord arrived;  // over all meetings
    alignas(64) SharedWord epoch;    // the last meeting that is complete
    Joined joined[2];

    [[nodiscard]] Contribution* table(std::uint32_t epoch_number, int ranks) {
        return reinterpret_cast<Contribution*>(this + 1) + (epoch_number & 1U) * static_cast<std::size_t>(ranks);
    }
    static std::size_t bytes(int ranks) {
        return sizeof(Meeting) + 2 * static_cast<std::size_t>(ranks) * sizeof(Contribution);
    }
};

void Group::pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void Group::make_progress() const {
    int there = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &there, MPI_STATUS_IGNORE);
}

/// Which ranks share a node, and communicators in that order.
void Group::settle(MPI_Comm comm, int node_number) {
    int old_rank = 0;
    int ranks = 1;
    PMPI_Comm_rank(comm, &old_rank);
    PMPI_Comm_size(comm, &ranks);
    if (node_number >= 0) {
        PMPI_Comm_split(comm, node_number, old_rank, &node_);
    } else if (const int each = test_ranks_per_node(); each > 0) {
        PMPI_Comm_split(comm, old_rank / each, old_rank, &node_);
    } else {
        PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, old_rank, MPI_INFO_NULL, &node_);
    }
    const std::vector<int> leader_of = mpi::node_leaders(comm, node_);
    int crowded = share_processors(node_) ? 1 : 0;
    PMPI_Allreduce(MPI_IN_PLACE, &crowded, 1, MPI_INT, MPI_MAX, comm);
    topology_.crowded = crowded != 0;

    std::vector<int> order(leader_of.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return leader_of[static_cast<std::size_t>(a)] < leader_of[static_cast<std::size_t>(b)];
    });
    topology_.node_of.resize(order.size());
    nodes_ = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const auto here = static_cast<std::size_t>(order[i]);
        const bool first = i == 0 || leader_of[here] != leader_of[static_cast<std::size_t>(order[i - 1])];
        if (first) {
            ++nodes_;
            starts_.push_back(static_cast<int>(i * sizeof(Contribution)));
            counts_.push_back(0);
        }
        counts_.back() += static_cast<int>(sizeof(Contribution));
        topology_.node_of[i] = nodes_ - 1;
        if (order[i] == old_rank) rank_ = static_cast<int>(i);
    }
    PMPI_Comm_split(comm, 0, rank_, &comm_);
    PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    const int node = this->node_of(rank_);
    const std::vector<int>& node_of = topology_.node_of;
    first_local_ = static_cast<int>(std::find(node_of.begin(), node_of.end(), node) - node_of.begin());
    locals_ = static_cast<int>(std::count(node_of.begin(), node_of.end(), node));
    leaders_ = MPI_COMM_NULL;
    if (nodes_ > 1) {
        PMPI_Comm_split(comm_, rank_ == first_local_ ? 0 : MPI_UNDEFINED, rank_, &leaders_);
        if (leaders_ != MPI_COMM_NULL) PMPI_Comm_set_errhandler(leaders_, MPI_ERRORS_RETURN);
    }
}

/// The memory to meet in; empty, or why there is none.
std::string Group::share_meeting() {
    const std::size_t bytes = Meeting::bytes(size());
    int error = 0;
    if (rank_ == first_local_) error = memory_.create(bytes);
    SharedMemory::Address address;
    if (rank_ == first_local_ && error == 0) {
        // Its words begin as zeroes.
        for (Meeting::Joined& joined : std::launder(reinterpret_cast<Meeting*>(memory_.data()))->joined)
            joined.set(Sums{});
        address = memory_.address();
        of_nodes_.resize(static_cast<std::size_t>(nodes_));
    }
    PMPI_Bcast(&address, static_cast<int>(sizeof address), MPI_BYTE, 0, node_);
    if (rank_ != first_local_) error = address.descriptor < 0 ? ENOMEM : memory_.attach(address, bytes);
    int worst = error;
    PMPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MAX, comm_);
    memory_.seal();
    if (worst != 0) return std::string("no memory shared by the ranks of a node: ") + std::strerror(worst);
    meeting_ = std::launder(reinterpret_cast<Meeting*>(memory_.data()));
    return {};
}

std::unique_ptr<Group> Group::make(MPI_Comm comm, std::string& why, int node) {
    std::unique_ptr<Group> group(new Group);
    group->settle(comm, node);
    why = group->share_meeting();
    if (why.empty()) return group;
    group->free();
    return nullptr;
}

void Group::free() {
    if (leaders_ != MPI_COMM_NULL) PMPI_Comm_free(&leaders_);
    PMPI_Comm_free(&node_);
    PMPI_Comm_free(&comm_);
}

int Group::share(SharedMemory& memory, std::size_t bytes) {
    const bool leader = rank_ == first_local_;
    const int error = leader ? memory.create(bytes) : 0;
    SharedMemory::Address address;
    if (leader && error == 0) address = memory.address();
    const std::int64_t process_and_descriptor =
        static_cast<std::int64_t>(address.process) << 32 | static_cast<std::uint32_t>(address.descriptor);
    const Contribution mine{{process_and_descriptor, static_cast<std::int64_t>(address.key)}};
    const Contribution said = meet(mine)[static_cast<std::size_t>(first_local_)];
    if (leader) return error;
    address = {static_cast<std::int32_t>(said.words[0] >> 32), static_cast<std::int32_t>(said.words[0]),
               static_cast<std::uint64_t>(said.words[1])};
    return address.descriptor < 0 ? ENOMEM : memory.attach(address, bytes);
}

template <typename AmongNodes>
void Group::come_together(std::uint32_t epoch, AmongNodes among_nodes) {
    const std::uint32_t all = epoch * static_cast<std::uint32_t>(locals_);  // modulo 2^32, as the counter
    const std::uint32_t come = meeting_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1;
    const auto complete = [&] {
        // Nobody reads the sums of the meeting before any more.
        meeting_->joined[(epoch + 1) & 1U].set(Sums{});
        meeting_->epoch.store(epoch, std::memory_order_release);
        wake_all(meeting_->epoch);
    };
    if (nodes_ == 1) {
        if (come == all) complete();
    } else if (come == all) {
        wake_all(meeting_->arrived);
    }
    if (nodes_ > 1 && rank_ == first_local_) {
        wait(meeting_->arrived, [&] { return meeting_->arrived.load(std::memory_order_acquire) == all; });
        among_nodes();
        complete();
    }
    wait(meeting_->epoch, [&] { return meeting_->epoch.load(std::memory_order_acquire) == epoch; });
}

std::span<const Contribution> Group::meet(const Contribution& mine, Sums& sums) {
    const std::uint32_t epoch = ++epoch_;
    Contribution* const table = meeting_->table(epoch, size());
    Meeting::Joined& joined = meeting_->joined[epoch & 1U];
    table[rank_] = mine;
    joined.join(sums);
    ++told_.meetings;
    told_.bytes += static_cast<std::int64_t>(sizeof mine + sizeof sums);
    come_together(epoch, [&] {
        PMPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, table, counts_.data(), starts_.data(), MPI_BYTE, leaders_);
        of_nodes_[static_cast<std::size_t>(node_of(rank_))] = joined.get();
        PMPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, of_nodes_.data(), static_cast<int>(sizeof(Sums)), MPI_BYTE,
                       leaders_);
        Sums all;
        for (const Sums& one : of_nodes_) all.join(one);
        joined.set(all);
        told_.bytes += static_cast<std::int64_t>(static_cast<std::size_t>(size()) * sizeof mine +
                                                 static_cast<std::size_t>(nodes_) * sizeof sums);
    });
    sums = joined.get();
    return {table, static_cast<std::size_t>(size())};
}

Group::Range Group::range(Range mine) {
    const std::uint32_t epoch = ++epoch_;
    Meeting::Joined& joined = meeting_->joined[epoch & 1U];
    Sums sums;
    sums.least = mine.least;
    sums.most = mine.most;
    joined.join(sums);
    ++told_.reductions;
    told_.bytes += static_cast<std::int64_t>(sizeof mine);
    come_together(epoch, [&] {
        const Sums here = joined.get();
        // ~ turns the order around.
        std::int64_t words[2] = {here.least, ~here.most};
        PMPI_Allreduce(MPI_IN_PLACE, words, 2, MPI_INT64_T, MPI_MIN, leaders_);
        sums.least = words[0];
        sums.most = ~words[1];
        joined.set(sums);
        told_.bytes += static_cast<std::int64_t>(sizeof words);
    });
    const Sums all = joined.get();
    return {all.least, all.most};
}

}  // namespace ioweir::exchange
