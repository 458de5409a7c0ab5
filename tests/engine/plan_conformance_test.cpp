// What is planned is what runs: every step that the engine takes in a collective call (storage operations of writers, bytes that ranks
// hand over) against the Plan that planner::plan() makes of the ranks' requests. Random patterns, all strategies of one shared file, and of
// containers: groups, logs, subfiles. What a rank moves by itself into a container is compared as bytes alone: its storage operations are
// the container's. Write-behind is compared on one node, for which its plans are drawn.
//
// The simulator carries out the same Plan: each rank's storage operations, their bytes, its messages and theirs are those that the engine's
// ranks have counted.
//
// IOWEIR_TEST_RANKS_PER_NODE plays several nodes.
#include <sched.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine_world.hpp"
#include "planner/plan.hpp"
#include "sim/simulation.hpp"

namespace ioweir {
namespace {

using layout::Extent;
using layout::ExtentList;

struct Case {
    const char* suffix;
    const char* rule;
};
constexpr Case strategies[] = {
    {"everyone", R"(writers = "everyone")"},
    {"even", "writers = \"aggregators:2\"\nbuffer = 96"},
    {"all", "writers = \"aggregators:99\"\nbuffer = 201"},
    {"default", R"(writers = "aggregators:1")"},
    {"aligned", "writers = \"aggregators:3\"\ndomains = \"aligned\"\nbuffer = 150\nstripe = { size = 32, count = 2 }"},
    {"cyclic", "writers = \"aggregators:2\"\ndomains = \"cyclic\"\nbuffer = 192\nstripe = { size = 64, count = 2 }"},
    {"groups",
     "writers = \"aggregators:auto\"\ndomains = \"group-cyclic\"\nbuffer = 128\nstripe = { size = 64, count = 2 }"},
    {"cooperative",
     "writers = \"aggregators:3\"\ndomains = \"cooperative\"\nbuffer = 128\nstripe = { size = 64, count = 3 }"},
    {"ordered",
     "writers = \"aggregators:3\"\norder = \"contention-free\"\nbuffer = 160\nstripe = { size = 80, count = 3 }"},
    {"shortest",
     "writers = \"aggregators:2\"\ndomains = \"cooperative\"\norder = \"contention-free\"\nrounds = \"shortest\"\n"
     "buffer = 96\nstripe = { size = 48, count = 2 }"},
    {"threshold",
     "writers = \"aggregators:2\"\norder = \"contention-free\"\nthreshold = 1.0\nbuffer = 64\n"
     "stripe = { size = 100, count = 3 }"},
    {"large", "writers = \"aggregators:2\"\nbuffer = \"1 MiB\""},
    {"auto", "writers = \"auto\"\nbuffer = 128"},
    {"auto-even", "writers = \"auto\"\ndomains = \"even\"\nbuffer = 64"},
    {"behind", "writers = \"behind:1\"\nvisibility = \"sync\""},
    {"behind-two", "writers = \"behind:2\"\nvisibility = \"sync\""},
    {"grouped", "mapping = \"grouped:2\"\nwriters = \"aggregators:1\"\nbuffer = 96\nvisibility = \"sync\""},
    {"grouped-auto", "mapping = \"grouped:2\"\nwriters = \"auto\"\nbuffer = 128\nvisibility = \"sync\""},
    {"each-its-own", "mapping = \"grouped:99\"\nwriters = \"everyone\"\nvisibility = \"sync\""},
    {"log", "mapping = \"log\"\nwriters = \"aggregators:2\"\nbuffer = 128\nvisibility = \"sync\""},
    {"log-arrival",
     "mapping = \"log\"\nwriters = \"aggregators:3\"\norder = \"arrival\"\nbuffer = 64\nvisibility = \"sync\""},
    {"subfiles",
     "mapping = \"subfiles:3\"\nwriters = \"aggregators:2\"\ndomains = \"cyclic\"\nbuffer = 192\nstripe = { size = 64 "
     "}"},
    {"subfiles-free",
     "mapping = \"subfiles:3\"\nwriters = \"aggregators:3\"\norder = \"contention-free\"\nbuffer = 160\nstripe = { "
     "size = 80 }"},
    {"subfiles-auto", "mapping = \"subfiles:2\"\nwriters = \"auto\"\nbuffer = 128\nstripe = { size = 32 }"},
};

std::string plan_text() {
    std::string text;
    for (const Case& one : strategies)
        text += "[[file]]\nmatch = \"*." + std::string(one.suffix) + "\"\n" + one.rule + "\n";
    return text;
}

[[maybe_unused]] const testing::Environment* const registered = add_world(plan_text(), false);

/// One step as numbers, so that ranks can send each other theirs: writer, round, operation or not, offset, bytes, by which rank.
struct Taken {
    std::int64_t writer = 0, round = 0, operation = 0, offset = 0, bytes = 0, rank = 0;
    friend auto operator<=>(const Taken&, const Taken&) = default;
};
std::vector<Taken> taken;

void remember(const engine::Step& step) {
    taken.push_back(
        {step.writer, step.round, step.operation ? 1 : 0, step.extent.offset, step.extent.length, world->rank});
}

std::string text_of(const Taken& one) {
    return "rank " + std::to_string(one.rank) + (one.operation != 0 ? " moves " : " hands ") +
           std::to_string(one.bytes) + (one.operation != 0 ? " bytes at " + std::to_string(one.offset) : " bytes") +
           " as or to writer " + std::to_string(one.writer) + " in round " + std::to_string(one.round);
}

/// Every rank's extents, the same on all ranks: dense, sparse, apart from each other or interleaved; some ranks have none. `shared`: they
/// may name the same bytes.
std::vector<ExtentList> random_pattern(std::mt19937_64& random, bool shared) {
    const auto between = [&](std::int64_t least, std::int64_t most) {
        return std::uniform_int_distribution<std::int64_t>(least, most)(random);
    };
    std::vector<ExtentList> lists(static_cast<std::size_t>(world->ranks));
    const std::int64_t granule = std::int64_t{1} << between(0, 6);
    const std::int64_t longest_gap = between(0, 3) == 0 ? 0 : between(1, 8) * (between(0, 5) == 0 ? 300 : 1);
    const bool apart = between(0, 3) == 0;
    std::int64_t at = between(0, 20);
    const std::int64_t pieces = between(0, 40);
    for (std::int64_t i = 0; i < pieces; ++i) {
        const auto rank = static_cast<std::size_t>(apart ? i * world->ranks / pieces : between(0, world->ranks - 1));
        const Extent piece{at * granule, between(1, 12) * granule};
        lists[rank].push_back(piece);
        if (shared && between(0, 4) == 0)
            lists[static_cast<std::size_t>(between(0, world->ranks - 1))].push_back(piece);
        at += piece.length / granule + between(0, longest_gap);
    }
    for (ExtentList& list : lists) layout::normalize(list);
    return lists;
}

planner::Topology played_topology() {
    const char* text = std::getenv("IOWEIR_TEST_RANKS_PER_NODE");
    const int each = text != nullptr ? std::atoi(text) : world->ranks;
    planner::Topology topology;
    for (int rank = 0; rank < world->ranks; ++rank) topology.node_of.push_back(rank / each);
    return topology;
}

/// Do ranks share processors? As the engine finds out (exchange/group.cpp), on one machine.
bool is_crowded(const planner::Topology& topology) {
    std::map<int, int> ranks;
    for (const int node : topology.node_of) ++ranks[node];
    cpu_set_t processors;
    CPU_ZERO(&processors);
    sched_getaffinity(0, sizeof processors, &processors);
    PMPI_Allreduce(MPI_IN_PLACE, &processors, static_cast<int>(sizeof processors), MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](const auto& node) { return node.second > CPU_COUNT(&processors); });
}

layout::StripeLayout layout_of(const planner::Strategy& strategy) {
    const planner::Stripe& stripe = strategy.stripe;
    if (stripe.size_bytes == 0) return layout::StripeLayout::unstriped();
    const bool subfiles = strategy.mapping.kind == planner::MappingKind::subfiles;
    const std::int64_t count = subfiles ? strategy.mapping.count : stripe.count;
    std::vector<std::int32_t> targets;
    for (std::int32_t i = 0; i < count; ++i) targets.push_back(i);
    return layout::StripeLayout::make(stripe.size_bytes, targets).take();
}

std::vector<Taken> steps_of(const planner::Plan& plan, const layout::AccessPattern& pattern) {
    std::vector<Taken> steps;
    for (std::int64_t writer = 0; writer < plan.schedule->writers(); ++writer) {
        const int its_rank = plan.schedule->writer_rank(writer);
        for (std::int64_t round = 0; round < plan.schedule->rounds(writer); ++round) {
            plan.schedule->visit_operations(pattern, writer, round, [&](Extent extent) {
                steps.push_back({writer, round, 1, extent.offset, extent.length, its_rank});
            });
            plan.schedule->visit_messages(pattern, writer, round, [&](const planner::Message& message) {
                steps.push_back({writer, round, 0, 0, layout::total_bytes(message.extents).value(), message.rank});
            });
        }
    }
    std::sort(steps.begin(), steps.end());
    return steps;
}

/// What all ranks have taken, sorted; on rank 0.
std::vector<Taken> all_taken() {
    constexpr int words = sizeof(Taken) / sizeof(std::int64_t);
    const int mine = static_cast<int>(taken.size()) * words;
    std::vector<int> counts(static_cast<std::size_t>(world->ranks)), starts(counts.size());
    PMPI_Gather(&mine, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    int sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        starts[i] = sum;
        sum += counts[i];
    }
    std::vector<Taken> all(world->rank == 0 ? static_cast<std::size_t>(sum / words) : 0);
    PMPI_Gatherv(taken.data(), mine, MPI_INT64_T, all.data(), counts.data(), starts.data(), MPI_INT64_T, 0,
                 MPI_COMM_WORLD);
    std::sort(all.begin(), all.end());
    return all;
}

MPI_Datatype type_of(const ExtentList& list) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> offsets;
    for (const Extent& extent : list) {
        lengths.push_back(static_cast<int>(extent.length));
        offsets.push_back(static_cast<MPI_Aint>(extent.offset));
    }
    MPI_Datatype type = MPI_DATATYPE_NULL;
    PMPI_Type_create_hindexed(static_cast<int>(list.size()), lengths.data(), offsets.data(), MPI_BYTE, &type);
    PMPI_Type_commit(&type);
    return type;
}

/// The first difference between what was planned and what ran; empty: none.
std::string difference(const std::vector<Taken>& planned, const std::vector<Taken>& ran) {
    std::vector<Taken> only_planned, only_ran;
    std::set_difference(planned.begin(), planned.end(), ran.begin(), ran.end(), std::back_inserter(only_planned));
    std::set_difference(ran.begin(), ran.end(), planned.begin(), planned.end(), std::back_inserter(only_ran));
    std::string text;
    if (!only_planned.empty()) text += "planned and not done: " + text_of(only_planned.front()) + "; ";
    if (!only_ran.empty()) text += "done and not planned: " + text_of(only_ran.front());
    return text;
}

struct Seen {
    std::int64_t exchanged = 0, alone = 0, exchanged_in_containers = 0, behind = 0, simulated_operations = 0,
                 simulated_messages = 0;
};

/// What a rank has done.
struct Done {
    std::int64_t operations = 0, operation_bytes = 0, messages = 0, message_bytes = 0;
    friend bool operator==(const Done&, const Done&) = default;
};
std::ostream& operator<<(std::ostream& out, const Done& done) {
    return out << done.operations << " operations of " << done.operation_bytes << " bytes, " << done.messages
               << " messages of " << done.message_bytes << " bytes";
}

class CountingObserver final : public sim::Observer {
public:
    explicit CountingObserver(int ranks) : done(static_cast<std::size_t>(ranks)) {}
    void handed(int rank, planner::Turn /*turn*/, std::int64_t bytes) override {
        ++done[static_cast<std::size_t>(rank)].messages;
        done[static_cast<std::size_t>(rank)].message_bytes += bytes;
    }
    void moved(const sim::Moved& operation) override {
        ++done[static_cast<std::size_t>(operation.rank)].operations;
        done[static_cast<std::size_t>(operation.rank)].operation_bytes += operation.range.length;
    }
    std::vector<Done> done;
};

std::vector<Done> simulated(const layout::ListedPattern& pattern, const planner::Topology& topology,
                            const planner::Strategy& strategy, bool writes) {
    sim::Machine machine;
    machine.targets.count = 3;
    machine.files.stripe_count = 1;  // where a plan names no stripes, the file has none
    sim::Workload workload;
    workload.ranks = topology.ranks();
    workload.topology = topology;
    workload.writes = writes;
    workload.reads = !writes;
    workload.pattern = [&](std::int64_t) { return std::make_shared<layout::ListedPattern>(pattern); };
    CountingObserver observer(workload.ranks);
    const auto result = sim::simulate(machine, workload, strategy, 1, &observer);
    EXPECT_TRUE(result.ok()) << result.error().message();
    return observer.done;
}

std::vector<Done> done_by_engine(const std::vector<Taken>& steps, int ranks) {
    std::vector<Done> done(static_cast<std::size_t>(ranks));
    for (const Taken& one : steps) {
        Done& its = done[static_cast<std::size_t>(one.rank)];
        (one.operation != 0 ? its.operations : its.messages) += 1;
        (one.operation != 0 ? its.operation_bytes : its.message_bytes) += one.bytes;
    }
    return done;
}

/// Each rank's answer, on all ranks.
std::vector<int> of_all_ranks(bool mine) {
    const int word = mine ? 1 : 0;
    std::vector<int> all(static_cast<std::size_t>(world->ranks));
    PMPI_Allgather(&word, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
    return all;
}

/// The ranks that exchange with a rank: all, or those of its group.
struct Circle {
    int first = 0, last = 0;        ///< of ranks, the last one not included
    std::int64_t first_writer = 0;  ///< of the plan
};
Circle circle_of(int rank, const planner::Strategy& strategy, const planner::Plan& plan) {
    if (strategy.mapping.kind != planner::MappingKind::grouped) return {0, world->ranks, 0};
    const std::int64_t groups = std::min<std::int64_t>(strategy.mapping.count, world->ranks);
    const int group = planner::group_of_rank(rank, groups, world->ranks);
    Circle circle{planner::first_rank_of_group(group, groups, world->ranks),
                  planner::first_rank_of_group(group + 1, groups, world->ranks), 0};
    while (circle.first_writer < plan.schedule->writers() && plan.file(circle.first_writer) < group)
        ++circle.first_writer;
    return circle;
}

/// Write-behind: what this rank's writer thread has written, if it has one, and what the rank has handed over. Ranks write no byte twice, so
/// that its place says whose it is. Operations that follow each other in the file are one: where a record of the ring ends, the plan does not
/// know.
void take_behind(const planner::Plan& plan, const layout::AccessPattern& pattern, const std::vector<Extent>& operations,
                 std::int64_t bytes) {
    const planner::Schedule& schedule = *plan.schedule;
    std::int64_t writer = 0;  // that serves this rank
    while (writer + 1 < schedule.writers() && schedule.writer_rank(writer + 1) <= world->rank) ++writer;
    const int first = schedule.writer_rank(writer);
    if (bytes > 0) taken.push_back({writer, world->rank - first, 0, 0, bytes, world->rank});
    EXPECT_TRUE(operations.empty() || first == world->rank) << "a rank without a thread has written";
    std::map<int, ExtentList> of_ranks;
    for (const Extent& operation : operations) {
        int owner = 0;
        while (owner < pattern.ranks() && layout::collect(pattern, owner, {operation.offset, 1}).empty()) ++owner;
        of_ranks[owner].push_back(operation);
    }
    for (auto& [owner, extents] : of_ranks) {
        layout::normalize(extents);
        for (const Extent& extent : extents)
            taken.push_back({writer, owner - first, 1, extent.offset, extent.length, world->rank});
    }
}

/// One collective call each way.
void compare_case(std::uint64_t number, const planner::Topology& topology, Seen& seen) {
    std::mt19937_64 random(number);
    const Case& strategy = strategies[number % std::size(strategies)];
    const auto parsed = policy::parse_plan_file(plan_text(), "test plan");
    const std::string path = world->path("case.") + strategy.suffix;
    const planner::Strategy& asked = parsed.value().match(path)->strategy;
    const bool behind = asked.writers.kind == planner::WritersKind::behind;
    if (behind && topology.node_of.back() > 0) return;
    const bool writes = random() % 2 == 0 || behind;
    const auto pattern =
        layout::ListedPattern::make(random_pattern(random, !writes)).take();  // two ranks that write a byte race
    SCOPED_TRACE("case " + std::to_string(number) + ", " + strategy.suffix + (writes ? ", written" : ", read"));
    const std::vector<planner::RankSummary> said = planner::summaries_of(pattern);
    const auto made = planner::plan(planner::RequestSummary::of(said, writes), topology, layout_of(asked), {}, asked);
    ASSERT_TRUE(made.ok()) << made.error().message();
    const bool shared = asked.mapping.kind == planner::MappingKind::shared;

    const cases::IoCalls& io = world->engine;
    MPI_File file = MPI_FILE_NULL;
    ASSERT_EQ(io.open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
              MPI_SUCCESS);
    const ExtentList own = layout::collect(pattern, world->rank);
    const auto bytes = static_cast<int>(pattern.rank_bytes(world->rank));
    std::vector<unsigned char> data(static_cast<std::size_t>(bytes) + 1, 'x');
    // Nobody reads behind the end.
    if (!writes && world->rank == 0) {
        const std::vector<unsigned char> all(static_cast<std::size_t>(pattern.bounds().end()) + 1, 'y');
        io.write_at(file, 0, all.data(), static_cast<int>(all.size()), MPI_BYTE, MPI_STATUS_IGNORE);
    }
    if (!shared) io.sync(file);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Datatype type = own.empty() ? MPI_BYTE : type_of(own);
    char native[] = "native";
    io.set_view(file, 0, MPI_BYTE, type, native, MPI_INFO_NULL);
    taken.clear();
    world->backend.take_operations();
    if (behind) PMPI_Barrier(MPI_COMM_WORLD);  // from here on, any rank's bytes may be written by a thread of this one
    const auto call = writes ? io.write_at_all(file, 0, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                             : io.read_at_all(file, 0, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    EXPECT_EQ(call, MPI_SUCCESS);
    if (behind) {
        io.sync(file);
        PMPI_Barrier(MPI_COMM_WORLD);  // each has waited for its own bytes, which another's thread writes
    }
    const std::vector<Extent> direct = world->backend.take_operations();
    const std::vector<int> took = of_all_ranks(!taken.empty());
    const auto has_exchanged = [&](int rank) {
        const Circle circle = circle_of(rank, asked, made.value());
        return std::any_of(took.begin() + circle.first, took.begin() + circle.last, [](int one) { return one != 0; });
    };
    const bool exchanged = has_exchanged(world->rank);
    const Circle circle = circle_of(world->rank, asked, made.value());
    for (Taken& one : taken) one.writer += circle.first_writer;
    // Without an exchange each rank moves its own bytes: its operations are those that its storage has seen.
    if (behind) {
        ++seen.behind;
        take_behind(made.value(), pattern, direct, bytes);
    } else if (!exchanged) {
        const std::int64_t writer = circle.first_writer + world->rank - circle.first;
        for (const Extent& extent : shared ? direct : std::vector<Extent>())
            taken.push_back({writer, 0, 1, extent.offset, extent.length, world->rank});
        if (bytes > 0) taken.push_back({writer, 0, 0, 0, bytes, world->rank});
    }
    (exchanged ? seen.exchanged : seen.alone) += 1;
    if (exchanged && !shared) ++seen.exchanged_in_containers;
    const std::vector<Taken> ran = all_taken();
    if (!own.empty()) PMPI_Type_free(&type);
    io.close(&file);
    if (!shared && world->rank == 0) world->hooks.File_delete(path.c_str(), MPI_INFO_NULL);

    if (world->rank == 0) {
        const auto verified = planner::verify(made.value(), pattern);
        EXPECT_TRUE(verified.ok()) << verified.error().message();
        std::vector<Taken> planned = steps_of(made.value(), pattern);
        if (!shared)
            std::erase_if(planned, [&](const Taken& one) {
                return one.operation != 0 && !has_exchanged(static_cast<int>(one.rank));
            });
        EXPECT_EQ(difference(planned, ran), "");
        // It takes no more files than ranks.
        if (asked.mapping.kind == planner::MappingKind::grouped && asked.mapping.count > world->ranks) return;
        std::vector<Done> engine = done_by_engine(ran, world->ranks);
        std::vector<Done> sim = simulated(pattern, topology, asked, writes);
        for (int rank = 0; rank < world->ranks; ++rank) {
            Done& its = engine[static_cast<std::size_t>(rank)];
            Done& simulated = sim[static_cast<std::size_t>(rank)];
            // Who moves its own bytes hands nothing over; in a container its storage operations are the container's.
            if (!has_exchanged(rank) && !behind) {
                EXPECT_EQ(simulated.messages, 0);
                if (writes) {
                    EXPECT_EQ(simulated.operation_bytes, its.message_bytes) << "rank " << rank;
                }
                its.messages = its.message_bytes = 0;
                if (!shared)
                    its.operations = its.operation_bytes = simulated.operations = simulated.operation_bytes = 0;
            }
            // In a log, pieces are one operation.
            if (asked.mapping.kind == planner::MappingKind::log) its.operations = simulated.operations = 0;
            EXPECT_EQ(simulated, its) << "rank " << rank << ", simulated and by the engine";
            seen.simulated_operations += simulated.operations;
            seen.simulated_messages += simulated.messages;
        }
    }
}

TEST_F(EngineTest, TakesTheStepsOfThePlanAndNoOthers) {
    world->on_step = remember;
    planner::Topology topology = played_topology();
    topology.crowded = is_crowded(topology);
    Seen seen;
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        compare_case(i, topology, seen);
        if (on_any_rank(HasFailure())) break;
    }
    world->on_step = nullptr;
    EXPECT_GT(seen.alone, 0);
    EXPECT_EQ(seen.exchanged > 0, world->ranks > 1) << "nothing was compared but each rank by itself";
    EXPECT_EQ(seen.behind > 0, topology.node_of.back() == 0);
    if (world->rank == 0) {
        EXPECT_GT(seen.simulated_operations, 0);
        EXPECT_GT(seen.simulated_messages, 0);
    }
    if (world->ranks > 2 && world->cases >= 2 * std::size(strategies)) {
        EXPECT_GT(seen.exchanged_in_containers, 0);
    }
}

}  // namespace
}  // namespace ioweir
