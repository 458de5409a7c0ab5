// What is planned is what runs, of divided netCDF arrays: which pieces of whose requests each rank carries out on which subfile, in which round and
// in which order, and their elements, against the ArrayPlans of all ranks. The adapter's exchange is the real one; what it would have the library
// do is written down here instead. Run under mpiexec.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <tuple>
#include <vector>

#include "../mpi_cases/ranks.hpp"
#include "adapters/pnetcdf/early.hpp"
#include "adapters/pnetcdf/exchange.hpp"
#include "adapters/pnetcdf/tasks.hpp"
#include "planner/array_plan.hpp"

namespace ioweir::pnetcdf {
namespace {

using Numbers = std::vector<std::int64_t>;

/// A piece of somebody's request, as a subfile gets it.
struct Carried {
    std::int64_t source = 0, subfile = 0;
    int variable = 0;
    Numbers start, count, stride;  ///< in the subfile
    friend bool operator==(const Carried&, const Carried&) = default;
};
std::ostream& operator<<(std::ostream& out, const Carried& one) {
    out << "rank " << one.source << " subfile " << one.subfile << " variable " << one.variable << ":";
    for (std::size_t d = 0; d < one.start.size(); ++d)
        out << " " << one.start[d] << "+" << one.count[d] << "*" << one.stride[d];
    return out;
}

/// What the stand-ins below have been given: of each call, one a round and subfile of this rank.
std::vector<std::vector<Carried>> carried;
bool elements_are_right = true;

Carried carried_of(std::int64_t source, std::int64_t subfile, int variable, const ncsub::RequestView& piece) {
    Carried one{source, subfile, variable, {}, {}, {}};
    for (std::size_t d = 0; d < piece.dimensions; ++d) {
        one.start.push_back(piece.start[d]);
        one.count.push_back(piece.count[d]);
        one.stride.push_back(piece.count[d] > 1 ? piece.step(d) : 1);
    }
    return one;
}

/// The element of a variable at a place of a subfile: no two are alike.
std::int32_t element_at(std::int64_t subfile, int variable, const Numbers& index) {
    std::uint64_t mixed = static_cast<std::uint64_t>(subfile) * 31 + static_cast<std::uint64_t>(variable);
    for (const std::int64_t i : index) mixed = mixed * 1'000'003 + static_cast<std::uint64_t>(i);
    return static_cast<std::int32_t>(mixed ^ (mixed >> 32));
}

/// Calls visit(index) for each element of a request, in its order.
template <typename Visit>
void for_each_element(const ncsub::RequestView& request, Visit&& visit) {
    Numbers at(request.dimensions, 0), index(request.dimensions);
    for (std::int64_t left = elements_of(request); left > 0; --left) {
        for (std::size_t d = 0; d < request.dimensions; ++d) index[d] = request.start[d] + at[d] * request.step(d);
        visit(index);
        for (std::size_t d = request.dimensions; d-- > 0;) {
            if (++at[d] < request.count[d]) break;
            at[d] = 0;
        }
    }
}

void write_down(std::span<Task* const> tasks, bool writing) {
    std::vector<Carried>& now = carried.emplace_back();
    for (const Task* task : tasks) {
        std::byte* data = task->data;
        for (std::int64_t piece = 0; piece < task->pieces; ++piece) {
            const ncsub::RequestView request = task->request(piece);
            now.push_back(carried_of(task->source, task->subfile, task->variable, request));
            for_each_element(request, [&](const Numbers& index) {
                const std::int32_t right = element_at(task->subfile, task->variable, index);
                if (writing)
                    elements_are_right = elements_are_right && std::memcmp(data, &right, sizeof right) == 0;
                else
                    std::memcpy(data, &right, sizeof right);
                data += sizeof right;
            });
        }
    }
}

}  // namespace

// In place of tasks.cpp, early.cpp, alone.cpp and those parts of the others that the exchange calls.
std::vector<Task*> by_subfile(const File&, std::vector<Task>& tasks) {
    std::vector<Task*> sorted;
    for (Task& task : tasks) sorted.push_back(&task);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Task* a, const Task* b) { return a->subfile < b->subfile; });
    return sorted;
}
std::span<Task* const> of_subfile(std::span<Task* const> sorted, std::int64_t subfile) {
    const auto [first, end] = std::ranges::equal_range(sorted, subfile, {}, &Task::subfile);
    return {first, end};
}
void carry_out_tasks(const File&, const Subfile&, MPI_Comm, std::span<Task* const> tasks, bool writing) {
    write_down(tasks, writing);
}
void carry_out_tasks_alone(File&, std::span<Task* const> sorted, bool writing) { write_down(sorted, writing); }
void begin_read(const File&, std::span<Task* const>) {}
int failure_in(const File&, const std::vector<Task>&) { return no_error; }
int agree(const File&, int error) { return error; }
int keep_records(const File&) { return no_error; }
void DropPendingList::operator()(PendingList*) const {}

namespace {

/// Arrays, and what each rank asks of them: the same on every rank.
struct Case {
    ncsub::Logical logical;
    std::vector<std::vector<std::pair<int, ncsub::Request>>> requests;  ///< of each rank: of which variable
};

Case random_case(std::uint64_t number, int ranks) {
    std::mt19937_64 random(number);
    const auto below = [&](std::int64_t first, std::int64_t last) {
        return std::uniform_int_distribution<std::int64_t>(first, last)(random);
    };
    Case made;
    made.logical.subfiles = below(1, 5);
    // One in ten has more than a round takes, 4 MiB of a rank.
    const bool large = number % 10 == 2;
    for (std::int64_t variable = below(1, 3); variable > 0; --variable) {
        ncsub::Division division;
        const auto dimensions = static_cast<std::size_t>(large ? 3 : below(1, 3));
        division.dimension = static_cast<int>(below(0, static_cast<std::int64_t>(dimensions) - 1));
        division.dimension_ids.assign(dimensions, 0);
        Numbers lengths;
        for (std::size_t d = 0; d < dimensions; ++d)
            lengths.push_back(large ? below(105, 115) : below(made.logical.subfiles, 24));
        division.boundaries =
            ncsub::boundaries_of(lengths[static_cast<std::size_t>(division.dimension)], made.logical.subfiles);
        ncsub::Variable described;
        described.type = ncsub::Type::int32;
        described.dimensions = lengths;  // in this test: what they are long
        made.logical.header.variables.push_back(described);
        made.logical.divisions.emplace_back(division);
    }
    for (int rank = 0; rank < ranks; ++rank) {
        auto& mine = made.requests.emplace_back();
        for (std::int64_t count = large ? 1 : below(0, 4); count > 0; --count) {
            const int variable = static_cast<int>(below(0, std::ssize(made.logical.divisions) - 1));
            ncsub::Request request;
            for (const std::int64_t length :
                 made.logical.header.variables[static_cast<std::size_t>(variable)].dimensions) {
                const std::int64_t start = !large && below(0, 2) == 0 ? below(0, length - 1) : 0;
                const std::int64_t stride = !large && below(0, 3) == 0 ? below(2, 3) : 1;
                const std::int64_t most = (length - 1 - start) / stride + 1;
                request.start.push_back(start);
                request.stride.push_back(stride);
                request.count.push_back(large || below(0, 1) == 0 ? most : below(1, most));
            }
            mine.emplace_back(variable, std::move(request));
        }
    }
    return made;
}

/// Where an element of a variable lies: the subfile, and its index there.
std::int32_t element_of_whole(const Case& all, int variable, Numbers index) {
    const ncsub::Division& division = *all.logical.divisions[static_cast<std::size_t>(variable)];
    std::int64_t& along = index[static_cast<std::size_t>(division.dimension)];
    std::int64_t subfile = 0;
    while (along >= division.boundaries[static_cast<std::size_t>(subfile) + 1]) ++subfile;
    along -= division.boundaries[static_cast<std::size_t>(subfile)];
    return element_at(subfile, variable, index);
}

/// What this rank has to carry out, of each round and of each of its subfiles, by the plans that all ranks make.
std::vector<std::vector<Carried>> planned(const Case& all, int me, bool writes) {
    const auto ranks = std::ssize(all.requests);
    const ncsub::Groups groups(ranks, all.logical.subfiles);
    std::deque<planner::ArrayPlan> plans;
    std::int64_t rounds = 1;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
        std::vector<planner::DividedRequest> requests;
        for (const auto& [variable, request] : all.requests[static_cast<std::size_t>(rank)]) {
            const ncsub::Division& division = *all.logical.divisions[static_cast<std::size_t>(variable)];
            requests.push_back({request, sizeof(std::int32_t), division.dimension, division.boundaries});
        }
        plans.emplace_back(requests, rank, groups, writes);
        rounds = std::max(rounds, plans.back().rounds());
    }
    const ncsub::Part mine = groups.subfiles_of(me);
    std::vector<std::vector<Carried>> steps;
    for (std::int64_t round = 0; round < rounds; ++round) {
        for (std::int64_t subfile = mine.begin; subfile < mine.end(); ++subfile) {
            std::vector<Carried>& step = steps.emplace_back();
            for (std::int64_t rank = 0; rank < ranks; ++rank) {
                const planner::ArrayPlan& plan = plans[static_cast<std::size_t>(rank)];
                plan.visit_messages(round, [&](const planner::ArrayMessage& message) {
                    if (message.owner != me || message.subfile != subfile) return;
                    const planner::RoundPart& part = plan.parts(round)[message.part];
                    const int variable = all.requests[static_cast<std::size_t>(rank)][part.whose].first;
                    Carried one = carried_of(rank, subfile, variable, message.piece);
                    one.start[static_cast<std::size_t>(
                        all.logical.divisions[static_cast<std::size_t>(variable)]->dimension)] = message.first;
                    step.push_back(std::move(one));
                });
            }
        }
    }
    return steps;
}

/// How many cases each run has: more in the long form.
int cases() {
    const char* asked = std::getenv("IOWEIR_TEST_CASES");
    return asked != nullptr ? std::atoi(asked) : 20;
}

TEST(Arrays, AreCarriedOutAsThePlanSays) {
    const auto [me, ranks] = ioweir::cases::Ranks();
    int most_rounds = 0;
    for (int number = 0; number < 2 * cases(); ++number) {
        const bool writes = number % 2 == 0;
        SCOPED_TRACE("case " + std::to_string(number));
        const Case all = random_case(static_cast<std::uint64_t>(number), ranks);
        File file;
        file.comm = file.group = MPI_COMM_WORLD;
        file.rank = me;
        file.ranks = ranks;
        file.logical = all.logical;
        const ncsub::Part mine = file.groups().subfiles_of(me);
        for (std::int64_t subfile = mine.begin; subfile < mine.end(); ++subfile) file.subfiles.push_back({subfile});

        std::vector<std::vector<std::int32_t>> buffers;
        std::vector<Wanted> wanted;
        for (const auto& [variable, request] : all.requests[static_cast<std::size_t>(me)]) {
            std::vector<std::int32_t>& buffer = buffers.emplace_back();
            for_each_element(request, [&, v = variable](const Numbers& index) {
                buffer.push_back(writes ? element_of_whole(all, v, index) : 0);
            });
            Wanted one;
            one.variable = variable;
            one.element = ncsub::Element::int32;
            one.access = static_cast<int>(wanted.size());
            one.request = request;
            if (writes)
                one.from = reinterpret_cast<const std::byte*>(buffer.data());
            else
                one.to = reinterpret_cast<std::byte*>(buffer.data());
            wanted.push_back(one);
        }
        carried.clear();
        elements_are_right = true;
        NamedVariables named{!wanted.empty() || me == ranks - 1, me == 0};
        ASSERT_EQ(exchange(file, wanted, writes, 0, named), no_error);
        EXPECT_TRUE(named.divided);
        EXPECT_TRUE(named.in_master);

        const std::vector<std::vector<Carried>> steps = planned(all, me, writes);
        EXPECT_EQ(carried, steps);
        EXPECT_TRUE(elements_are_right);
        if (!file.subfiles.empty())
            most_rounds = std::max(most_rounds, static_cast<int>(carried.size() / file.subfiles.size()));
        if (writes) continue;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            std::size_t at = 0;
            bool right = true;
            const auto& [variable, request] = all.requests[static_cast<std::size_t>(me)][i];
            for_each_element(request, [&, v = variable](const Numbers& index) {
                right = right && buffers[i][at++] == element_of_whole(all, v, index);
            });
            EXPECT_TRUE(right) << "access " << i;
        }
    }
    EXPECT_GT(most_rounds, 1) << "no case has more than one round";
}

TEST(Arrays, ThatNoRankNamesEndWithTheMeeting) {
    const auto [me, ranks] = ioweir::cases::Ranks();
    const Case all = random_case(1, ranks);
    File file;
    file.comm = file.group = MPI_COMM_WORLD;
    file.rank = me;
    file.ranks = ranks;
    file.logical = all.logical;
    for (const bool writes : {false, true}) {
        carried.clear();
        NamedVariables named{false, me == ranks - 1};
        ASSERT_EQ(exchange(file, {}, writes, 0, named), no_error);
        EXPECT_TRUE(carried.empty());
        EXPECT_FALSE(named.divided);
        EXPECT_TRUE(named.in_master);
    }
}

TEST(Arrays, OfOneRankAloneAreCarriedOutAtOnce) {
    const auto [me, ranks] = ioweir::cases::Ranks();
    const Case all = random_case(static_cast<std::uint64_t>(1000 + me), 1);
    File file;
    file.rank = me;
    file.ranks = ranks;
    file.logical = all.logical;
    std::vector<std::vector<std::int32_t>> buffers;
    std::vector<Wanted> wanted;
    for (const auto& [variable, request] : all.requests.front()) {
        std::vector<std::int32_t>& buffer = buffers.emplace_back();
        for_each_element(
            request, [&, v = variable](const Numbers& index) { buffer.push_back(element_of_whole(all, v, index)); });
        Wanted one;
        one.variable = variable;
        one.element = ncsub::Element::int32;
        one.request = request;
        one.from = reinterpret_cast<const std::byte*>(buffer.data());
        wanted.push_back(one);
    }
    carried.clear();
    elements_are_right = true;
    carry_out_alone(file, wanted, true);
    EXPECT_TRUE(elements_are_right);
    ASSERT_EQ(carried.size(), 1U);
    std::vector<Carried> expected;
    for (auto& step : planned(all, 0, false)) expected.insert(expected.end(), step.begin(), step.end());
    EXPECT_EQ(carried.front(), expected);
}

}  // namespace
}  // namespace ioweir::pnetcdf
