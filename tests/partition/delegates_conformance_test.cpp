// What is planned is what runs, of delegates: each message that a worker sends with a block, and what its delegate takes, against the groups and
// the lengths of messages that the planner gives. Run under mpiexec, with 2, 3 and 7 ranks.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "../mpi_cases/ranks.hpp"
#include "ioweir/ioweir.h"
#include "mpi/node_leaders.hpp"
#include "partition/core/block_header.hpp"
#include "partition/service.hpp"
#include "partition/wire.hpp"
#include "planner/delegates.hpp"

namespace {

/// A message of a block: to or from whom, and bytes without its head.
struct Handed {
    std::int64_t other = 0, bytes = 0;
    friend bool operator==(const Handed&, const Handed&) = default;
};
std::vector<Handed> sent, taken;

bool is_of_block(int tag) {
    using ioweir::partition::Message;
    return tag == static_cast<int>(Message::block) || tag == static_cast<int>(Message::first) ||
           tag == static_cast<int>(Message::more);
}

}  // namespace

// In place of the MPI library's, which the exchange calls.
extern "C" {
int PMPI_Issend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    static const auto library = reinterpret_cast<decltype(&PMPI_Issend)>(::dlsym(RTLD_NEXT, "PMPI_Issend"));
    if (is_of_block(tag)) sent.push_back({to, count - static_cast<int>(sizeof(ioweir::partition::Wire))});
    return library(data, count, type, to, tag, comm, request);
}
int PMPI_Recv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
    static const auto library = reinterpret_cast<decltype(&PMPI_Recv)>(::dlsym(RTLD_NEXT, "PMPI_Recv"));
    if (is_of_block(tag)) taken.push_back({from, count - static_cast<int>(sizeof(ioweir::partition::Wire))});
    return library(data, count, type, from, tag, comm, status);
}
}

namespace ioweir::partition {
namespace {

constexpr std::int64_t room_bytes = 8192;
constexpr int parts_of_rank = 3;

/// Of each part of a rank: bytes of its items. Every rank knows all.
std::vector<std::int64_t> items_of(int rank, std::uint64_t number) {
    std::mt19937_64 random(number * 1000 + static_cast<std::uint64_t>(rank));
    std::vector<std::int64_t> bytes(parts_of_rank);
    for (std::int64_t& one : bytes) one = std::uniform_int_distribution<std::int64_t>(0, 20'000)(random);
    return bytes;
}

/// What a worker hands over, block by block.
std::vector<Handed> planned(int rank, std::int64_t other, std::uint64_t number) {
    const std::int64_t most = planner::handed_bytes(room_bytes, sizeof(Wire));
    std::vector<Handed> messages;
    for (const std::int64_t items : items_of(rank, number)) {
        for (std::int64_t left = block_header_bytes + items; left > 0; left -= most)
            messages.push_back({other, std::min(left, most)});
    }
    return messages;
}

std::string shared_folder() {
    std::array<char, 64> name{"/tmp/ioweir-delegates-XXXXXX"};
    if (cases::Ranks().mine == 0 && ::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no folder";
    MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    return name.data();
}

void write_set(Service& service, const std::string& base, int rank, std::uint64_t number) {
    std::unique_ptr<HandedSet> set;
    ASSERT_FALSE(HandedSet::create(service, {base, 1, parts_of_rank, 0, {"field"}}, MPI_INFO_NULL, set));
    const std::vector<std::int64_t> items = items_of(rank, number);
    for (std::int64_t part = 0; part < parts_of_rank; ++part) {
        const std::int64_t bytes = items[static_cast<std::size_t>(part)];
        const std::string data(static_cast<std::size_t>(bytes), 'x');
        const BlockHeader header{"field", set->global_part(part), bytes, {bytes}};
        ASSERT_FALSE(set->write(0, part, header, data.data(), std::nullopt));
    }
    ASSERT_FALSE(set->close());
    ASSERT_FALSE(service.leave());
}

TEST(Delegates, TakeWhatThePlanSaysFromTheirWorkers) {
    const auto [rank, ranks] = cases::Ranks();
    const std::string folder = shared_folder();
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "ioweir_worker_memory", std::to_string(room_bytes).c_str());
    for (std::int64_t delegates = 1; delegates <= ranks / 2; ++delegates) {
        const planner::DelegateGroups groups = planner::delegate_groups(mpi::node_leaders(MPI_COMM_WORLD), delegates);
        const std::vector<int> group = groups.ranks_of(groups.group_of(rank));
        const auto number = static_cast<std::uint64_t>(delegates);
        sent.clear();
        taken.clear();
        std::unique_ptr<Service> service;
        ASSERT_FALSE(Service::split(MPI_COMM_WORLD, delegates, info, service));
        ASSERT_EQ(service->is_delegate(), group.front() == rank);
        if (service->is_delegate())
            service->serve();
        else
            write_set(*service, folder + "/set" + std::to_string(delegates), rank, number);
        service.reset();
        if (group.front() != rank) {
            EXPECT_EQ(sent, planned(rank, group.front(), number));
            EXPECT_TRUE(taken.empty());
            continue;
        }
        EXPECT_TRUE(sent.empty());
        std::size_t expected = 0;
        for (const int worker : group) {
            if (worker == rank) continue;
            std::vector<Handed> from;
            std::copy_if(taken.begin(), taken.end(), std::back_inserter(from),
                         [&](const Handed& one) { return one.other == worker; });
            EXPECT_EQ(from, planned(worker, worker, number));
            expected += from.size();
        }
        EXPECT_EQ(taken.size(), expected) << "from ranks of other groups";
    }
    MPI_Info_free(&info);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::filesystem::remove_all(folder);
}

TEST(Delegates, AreThoseThatAllRanksWant) {
    const auto [rank, ranks] = cases::Ranks();
    if (ranks < 4) GTEST_SKIP() << "there can be one only";
    std::unique_ptr<Service> service;
    const auto failure = Service::split(MPI_COMM_WORLD, rank == 1 ? 2 : 1, MPI_INFO_NULL, service);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, IOWEIR_ERR_ARGUMENT);
}

/// A delegate would put blocks under other fields' names, or behind its tables.
TEST(Delegates, TakeNoSetThatWorkersBeginDifferently) {
    const auto [rank, ranks] = cases::Ranks();
    if (ranks < 3) GTEST_SKIP() << "there is one worker only";
    const std::string folder = shared_folder();
    std::unique_ptr<Service> service;
    ASSERT_FALSE(Service::split(MPI_COMM_WORLD, 1, MPI_INFO_NULL, service));
    if (service->is_delegate()) {
        service->serve();
    } else {
        int worker = 0;
        MPI_Comm_rank(service->workers(), &worker);
        const std::vector<std::string> fields{"p", "u"};
        for (const Wanted& other :
             {Wanted{"", 2, 1, 1, fields}, Wanted{"", 1, 1, 1, {"u", "p"}}, Wanted{"", 1, 1, 1, {"p", "u", "v"}}}) {
            Wanted wanted = worker == 1 ? other : Wanted{"", 1, 1, 1, fields};
            wanted.base = folder + "/set";
            std::unique_ptr<HandedSet> set;
            const auto failure = HandedSet::create(*service, wanted, MPI_INFO_NULL, set);
            EXPECT_TRUE(failure && failure->code == IOWEIR_ERR_ARGUMENT);
            EXPECT_FALSE(set);
            if (set) set->abandon();
        }
        EXPECT_FALSE(service->leave());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ioweir::partition
