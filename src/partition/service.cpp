#include "partition/service.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <new>
#include <system_error>
#include <utility>

#include "base/checksum.hpp"
#include "ioweir/ioweir.h"
#include "mpi/node_leaders.hpp"
#include "partition/delegate.hpp"

namespace ioweir::partition {
namespace {

/// This thread works when the program's do not need the processor. What the system refuses of it stays as it was.
void stand_back(bool anywhere) {
    const sched_param none{};
    (void)::sched_setscheduler(0, SCHED_BATCH, &none);  // it takes no processor from a running thread when it wakes up
    if (!anywhere) return;
    constexpr std::size_t most_processors = 8192;
    std::array<unsigned char, most_processors / 8> all{};
    all.fill(0xff);  // the system leaves out those that are not ours
    (void)::sched_setaffinity(0, all.size(), reinterpret_cast<const cpu_set_t*>(all.data()));
}

std::optional<Failure> why_no_threads() {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE) return std::nullopt;
    const char* const name = level == MPI_THREAD_SINGLE     ? "MPI_THREAD_SINGLE"
                             : level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED"
                                                            : "MPI_THREAD_SERIALIZED";
    return argument("delegates as threads need MPI_THREAD_MULTIPLE", std::string("MPI gave ") + name,
                    "ask MPI_Init_thread() for it, or give ranks up: ioweir_delegates = ranks");
}

/// What a worker brings to the beginning of a set.
struct Brought {
    std::int64_t parts = 0;
    std::int64_t set = 0;  ///< of what has to be the same
};

std::vector<Brought> brought_by_all(MPI_Comm workers, Wanted wanted, const Options& options) {
    int ranks = 1;
    MPI_Comm_size(workers, &ranks);
    Brought mine;
    mine.parts = std::exchange(wanted.parts, 0);
    wanted.base.clear();  // ranks may have other names of one folder
    const std::string text = to_text(SetText{std::move(wanted), options, {}});
    mine.set = static_cast<std::int64_t>(checksum(text.data(), text.size()));
    std::vector<Brought> all(static_cast<std::size_t>(ranks));
    MPI_Allgather(&mine, 2, MPI_INT64_T, all.data(), 2, MPI_INT64_T, workers);
    return all;
}

}  // namespace

std::optional<Failure> Service::split(MPI_Comm comm, std::int64_t delegates, MPI_Info info,
                                      std::unique_ptr<Service>& made) {
    ServiceOptions options;
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    const std::vector<int> nodes = mpi::node_leaders(comm);
    std::optional<Failure> failure = read_options(info, options);
    const int most = options.threads ? ranks : ranks / 2;
    if (delegates == 0)
        delegates = planner::default_delegates(nodes, {options.set_bytes, options.delegate_bytes}, most);
    if (!failure && (delegates < 1 || delegates > most))
        failure = argument("a number of delegates that cannot be", std::to_string(delegates),
                           "from 1 to " + std::string(options.threads ? "all" : "half") + " of the " +
                               std::to_string(ranks) + " ranks");
    if (!failure && options.threads) failure = why_no_threads();
    if ((failure = agree(comm, failure))) return failure;
    // A delegate must be able to take the longest message of any worker. The rest has to be the same: the largest, and the least as the largest
    // of their negatives.
    const std::int64_t threads = options.threads ? 1 : 0;
    std::array<std::int64_t, 5> most_of{options.worker_bytes, delegates, -delegates, threads, -threads};
    MPI_Allreduce(MPI_IN_PLACE, most_of.data(), static_cast<int>(most_of.size()), MPI_INT64_T, MPI_MAX, comm);
    if (most_of[1] != -most_of[2] || most_of[3] != -most_of[4])
        return argument("ranks want different delegates", "on this rank " + std::to_string(delegates),
                        "give all ranks the same number and MPI_Info");
    options.worker_bytes = most_of[0];
    Channels channels;
    MPI_Comm_dup(comm, &channels.blocks);
    MPI_Comm_dup(comm, &channels.results);
    made.reset(new Service(channels, planner::delegate_groups(nodes, delegates), options));
    failure = agree(comm, made->prepare());
    made->all_are_prepared_.set_value(!failure);
    if (failure) made.reset();
    return failure;
}

Service::Service(const Channels& channels, planner::DelegateGroups groups, ServiceOptions options)
    : channels_(channels), groups_(std::move(groups)), options_(options) {
    int rank = 0;
    MPI_Comm_rank(channels_.blocks, &rank);
    const std::int64_t place = groups_.place_of(rank);
    const std::vector<int> group = groups_.ranks_of(groups_.group_of(rank));
    const bool serves = group.front() == rank;
    is_delegate_ = serves && !options_.threads;
    MPI_Comm_split(channels_.blocks, serves ? 0 : MPI_UNDEFINED, static_cast<int>(place), &delegates_);
    MPI_Comm_split(channels_.blocks, is_delegate_ ? MPI_UNDEFINED : 0, static_cast<int>(place), &workers_);
    if (serves) served_.assign(group.begin() + (is_delegate_ ? 1 : 0), group.end());
    delegate_rank_ = group.front();
}

std::optional<Failure> Service::prepare() {
    const bool in_process = delegates_ != MPI_COMM_NULL && options_.threads;
    try {
        if (in_process) {
            passage_ = std::make_unique<Passage>(options_.worker_bytes, channels_.results);
            hand_over_ = std::make_unique<HandOverInProcess>(*passage_);
        } else if (!is_delegate_) {
            hand_over_ = std::make_unique<HandOverBySending>(channels_, delegate_rank_, options_.worker_bytes);
        }
        if (delegates_ != MPI_COMM_NULL)
            delegate_ =
                std::make_unique<Delegate>(channels_, served_, delegates_, passage_.get(), options_.delegate_bytes,
                                           HandOverBySending::longest_message(options_.worker_bytes));
        if (in_process) {
            thread_ = std::thread([this, prepared = all_are_prepared_.get_future()]() mutable {
                if (!prepared.get()) return;
                stand_back(options_.anywhere);
                serve();
            });
        }
    } catch (const std::bad_alloc&) {
        return Failure{IOWEIR_ERR_MEMORY,
                       {"no memory for a service", std::to_string(options_.worker_bytes) + " bytes of a worker",
                        "make ioweir_worker_memory smaller"}};
    } catch (const std::system_error& error) {
        return Failure{IOWEIR_ERR_MEMORY,
                       {"no thread for a delegate", error.code().message(),
                        "allow more threads, or give ranks up: ioweir_delegates = ranks"}};
    }
    return std::nullopt;
}

Service::~Service() {
    if (thread_.joinable()) thread_.join();  // when its workers have left
    hand_over_.reset();
    for (MPI_Comm* const comm : {&delegates_, &workers_, &channels_.results, &channels_.blocks}) {
        if (*comm != MPI_COMM_NULL) MPI_Comm_free(comm);
    }
}

void Service::serve() {
    if (!delegate_) return;  // it has served
    delegate_->serve();
    delegate_.reset();
}

std::optional<Failure> Service::wait() { return hand_over_->results(ended_); }

std::optional<Failure> Service::leave() {
    auto failure = wait();
    Wire wire;
    wire.kind = Message::leave;
    if (!std::exchange(gone_, true)) hand_over_->send(wire, nullptr, 0);
    hand_over_->drain();
    return failure;
}

std::optional<Failure> HandedSet::create(Service& service, const Wanted& wanted, MPI_Info info,
                                         std::unique_ptr<HandedSet>& made) {
    Options options;
    std::optional<Failure> failure = read_options(info, options);
    Wanted mine = wanted;
    if (mine.files == 0) mine.files = service.delegates();
    if (!failure && (mine.files < 1 || mine.files > service.delegates()))
        failure = argument("a number of files that cannot be", std::to_string(mine.files),
                           "from 1 to the number of delegates, " + std::to_string(service.delegates()));
    if (!failure && mine.parts < 0)
        failure = argument("a number of parts that cannot be", std::to_string(mine.parts), "0 or more");
    if (!failure && mine.base.find('\n') != std::string::npos)
        failure = argument("a base name with a line's end", mine.base, "give another");
    const Hints hints = hints_of(info);
    for (const auto& [key, value] : hints) {
        if (!failure && (key + value).find('\n') != std::string::npos)
            failure = argument("a value of MPI_Info with a line's end", key + " = " + value, "give another");
    }
    if (!failure) failure = check_fields(mine.fields);
    const std::string text = to_text(SetText{mine, options, hints});
    if (!failure && std::ssize(text) > service.hand_over().most_bytes())
        failure = argument("a set that is too long to describe", std::to_string(text.size()) + " bytes",
                           "make ioweir_worker_memory larger");
    if ((failure = agree(service.workers(), failure))) return failure;
    const std::vector<Brought> all = brought_by_all(service.workers(), mine, options);
    int rank = 0;
    MPI_Comm_rank(service.workers(), &rank);
    const auto me = static_cast<std::size_t>(rank);
    if (std::any_of(all.begin(), all.end(), [&](const Brought& one) { return one.set != all[me].set; }))
        return argument("workers want to hand over different sets together", mine.base,
                        std::string(sameness) + ", and the same keys of ioweir");
    std::unique_ptr<HandedSet> set(new HandedSet(service, mine));
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i < me) set->first_part_ += all[i].parts;
        set->all_parts_ += all[i].parts;
    }
    set->number_ = service.begin_set();
    set->begin_blocks();
    Wire wire;
    wire.kind = Message::begin;
    wire.set = set->number_;
    service.hand_over().send(wire, text.data(), std::ssize(text));
    made = std::move(set);
    return std::nullopt;
}

std::optional<Failure> HandedSet::write(std::int64_t field, std::int64_t part, const BlockHeader& header,
                                        const void* items, std::optional<Failure> mine) {
    const Timed timed(figures_.write_ns);
    if (mine) {
        if (!failure_) failure_ = mine;
        return mine;
    }
    if (part >= 0) {
        auto text = encode_block_header(header);
        if (!text) return Failure{IOWEIR_ERR_ARGUMENT, text.error()};
        const std::int64_t most =
            service_.options().delegate_bytes - static_cast<std::int64_t>(sizeof(Wire)) - block_header_bytes;
        if (header.bytes > most)
            return argument("a block that is larger than a delegate's memory", std::to_string(header.bytes),
                            "make ioweir_delegate_memory larger than " + std::to_string(header.bytes));
        Wire wire;
        wire.kind = Message::block;
        wire.set = number_;
        wire.field = field;
        wire.part = part;
        service_.hand_over().send_block(wire, text.value(), items, header.bytes);
        ++blocks_;
        ++figures_.calls;
        note_written(field, part);
        figures_.useful_bytes += block_header_bytes + header.bytes;
    }
    return service_.hand_over().results();
}

std::optional<Failure> HandedSet::end(bool given_up) {
    const Timed timed(figures_.write_ns);
    std::optional<Failure> failure = failure_;
    if (!failure && !given_up) failure = why_incomplete();
    const Failure abandoned =
        argument("a set that was abandoned", wanted_.base + ", step " + std::to_string(wanted_.step), "");
    const Failure* const told = failure ? &*failure : given_up ? &abandoned : nullptr;
    std::string text;
    if (told != nullptr) text = to_message(told->error);
    text.resize(std::min<std::size_t>(text.size(), static_cast<std::size_t>(service_.hand_over().most_bytes())));
    Wire wire;
    wire.kind = Message::end;
    wire.set = number_;
    wire.number = blocks_;
    wire.code = told != nullptr ? told->code : 0;
    service_.hand_over().send(wire, text.data(), std::ssize(text));
    service_.end_set();
    auto earlier = service_.hand_over().results();
    return failure ? failure : earlier;
}

}  // namespace ioweir::partition
