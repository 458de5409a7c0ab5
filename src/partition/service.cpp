#include "partition/service.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <utility>

#include "base/checked.hpp"
#include "ioweir/ioweir.h"
#include "partition/delegate.hpp"

namespace ioweir::partition {
namespace {

Failure argument(const std::string& what, const std::string& value, const std::string& remedy) {
    return {IOWEIR_ERR_ARGUMENT, {what, value, remedy}};
}

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// Collective: of each rank the lowest one on its node.
std::vector<int> nodes_of(MPI_Comm comm) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    int lowest = rank;
    MPI_Bcast(&lowest, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    std::vector<int> all(static_cast<std::size_t>(ranks));
    MPI_Allgather(&lowest, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
    return all;
}

}  // namespace

std::int64_t Roles::group_of(std::int64_t place) const { return level_owner(std::ssize(order), delegates, place); }

std::vector<int> Roles::ranks_of(std::int64_t group) const {
    const Span places = level_share(std::ssize(order), delegates, group);
    return {order.begin() + places.first, order.begin() + places.end()};
}

Roles roles_of(const std::vector<int>& node_of_rank, std::int64_t delegates) {
    Roles roles;
    roles.delegates = delegates;
    roles.order.resize(node_of_rank.size());
    std::iota(roles.order.begin(), roles.order.end(), 0);
    std::stable_sort(roles.order.begin(), roles.order.end(), [&](int a, int b) {
        return node_of_rank[static_cast<std::size_t>(a)] < node_of_rank[static_cast<std::size_t>(b)];
    });
    return roles;
}

std::optional<Failure> Service::split(MPI_Comm comm, std::int64_t delegates, MPI_Info info,
                                      std::unique_ptr<Service>& made) {
    ServiceOptions options;
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    const std::vector<int> nodes = nodes_of(comm);
    if (delegates == 0) {
        std::vector<int> different = nodes;
        std::sort(different.begin(), different.end());
        const auto count = std::unique(different.begin(), different.end()) - different.begin();
        delegates =
            std::min<std::int64_t>(std::max<std::int64_t>(count, ceil_divide(std::int64_t{ranks}, 64)), ranks / 2);
    }
    std::optional<Failure> failure = read_options(info, options);
    if (!failure && (delegates < 1 || delegates > ranks / 2))
        failure = argument("a number of delegates that cannot be", std::to_string(delegates),
                           "from 1 to half of the " + std::to_string(ranks) + " ranks");
    if ((failure = agree(comm, failure))) return failure;
    MPI_Comm all = MPI_COMM_NULL;
    MPI_Comm_dup(comm, &all);
    made.reset(new Service(all, roles_of(nodes, delegates), options));
    return std::nullopt;
}

Service::Service(MPI_Comm all, Roles roles, ServiceOptions options)
    : all_(all), roles_(std::move(roles)), options_(options) {
    int rank = 0;
    MPI_Comm_rank(all_, &rank);
    const auto place = std::find(roles_.order.begin(), roles_.order.end(), rank) - roles_.order.begin();
    std::vector<int> group = roles_.ranks_of(roles_.group_of(place));
    is_delegate_ = group.front() == rank;
    MPI_Comm_split(all_, is_delegate_ ? 1 : 0, static_cast<int>(place), &own_);
    if (is_delegate_)
        served_.assign(group.begin() + 1, group.end());
    else
        hand_over_ = std::make_unique<HandOver>(all_, group.front(), options_.worker_bytes);
}

Service::~Service() {
    hand_over_.reset();
    MPI_Comm_free(&own_);
    MPI_Comm_free(&all_);
}

void Service::serve() {
    Delegate delegate(all_, served_, own_, options_.delegate_bytes);
    delegate.serve();
    gone_ = true;
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
    options.calls = WriteCalls::independent;
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
    if (!failure) {
        MasterHeader header;
        header.fields = mine.fields;
        header.bytes = header_unit_bytes;
        if (const auto front = encode_front(header); !front) failure = Failure{IOWEIR_ERR_ARGUMENT, front.error()};
    }
    if ((failure = agree(service.workers(), failure))) return failure;
    std::unique_ptr<HandedSet> set(new HandedSet(service, mine));
    std::int64_t through = mine.parts;
    MPI_Scan(&mine.parts, &through, 1, MPI_INT64_T, MPI_SUM, service.workers());
    MPI_Allreduce(&mine.parts, &set->all_parts_, 1, MPI_INT64_T, MPI_SUM, service.workers());
    set->first_part_ = through - mine.parts;
    set->number_ = service.begin_set();
    set->given_.assign(mine.fields.size(), std::vector<bool>(static_cast<std::size_t>(mine.parts), false));
    Wire wire;
    wire.kind = Message::begin;
    wire.set = set->number_;
    const std::string text = to_text(SetText{mine, options});
    service.hand_over().send(wire, text.data(), std::ssize(text));
    made = std::move(set);
    return std::nullopt;
}

bool HandedSet::is_written(std::int64_t field, std::int64_t part) const {
    return given_[static_cast<std::size_t>(field)][static_cast<std::size_t>(part)];
}

std::optional<Failure> HandedSet::write(std::int64_t field, std::int64_t part, const BlockHeader& header,
                                        const void* items, std::optional<Failure> mine) {
    const std::int64_t started = now_ns();
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
        given_[static_cast<std::size_t>(field)][static_cast<std::size_t>(part)] = true;
        figures_.useful_bytes += block_header_bytes + header.bytes;
    }
    auto earlier = service_.hand_over().results();
    figures_.write_ns += now_ns() - started;
    return earlier;
}

std::optional<Failure> HandedSet::end(bool given_up) {
    const std::int64_t started = now_ns();
    std::optional<Failure> failure = failure_;
    for (std::size_t field = 0; field < given_.size() && !given_up && !failure; ++field) {
        for (std::size_t part = 0; part < given_[field].size() && !failure; ++part) {
            if (!given_[field][part])
                failure =
                    argument("a field that was not written for every part",
                             fields()[field] + ", part " + std::to_string(global_part(static_cast<std::int64_t>(part))),
                             "write each field of each part before the set is closed");
        }
    }
    const Failure abandoned =
        argument("a set that was abandoned", wanted_.base + ", step " + std::to_string(wanted_.step), "");
    const Failure* const told = failure ? &*failure : given_up ? &abandoned : nullptr;
    std::string text;
    if (told != nullptr) text = to_lines(told->error);
    Wire wire;
    wire.kind = Message::end;
    wire.set = number_;
    wire.number = blocks_;
    wire.code = told != nullptr ? told->code : 0;
    service_.hand_over().send(wire, text.data(), std::ssize(text));
    service_.end_set();
    auto earlier = service_.hand_over().results();
    figures_.write_ns += now_ns() - started;
    return failure ? failure : earlier;
}

}  // namespace ioweir::partition
