// Processes with several handles of one container each, whose clocks are wrong, against a plain array of bytes: whatever MPI orders
// (sync, barrier, sync by any two handles; close and open) has that order.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "container/merge.hpp"
#include "container/testing.hpp"

namespace ioweir::container {
namespace {

constexpr std::int64_t most = 300;

/// A process: a clock that is off by an hour or so, and one container as long as it has a handle.
struct Process {
    explicit Process(std::int64_t off) : clock([this, off] { return 1'000'000 + off + time++ / 4; }) {}
    std::int64_t time = 0;  // stands still for some calls
    Clock clock;
    std::unique_ptr<Container> container;
    int handles = 0;
};

/// An MPI_File: some processes, each with a role.
struct Handle {
    std::vector<std::size_t> members;
    std::vector<Role> roles;
    std::shared_ptr<const GenerationLock> lock;
};

class World {
public:
    World(Place& place, std::size_t processes) : place_(place) {
        for (std::size_t i = 0; i < processes; ++i)
            processes_.push_back(std::make_unique<Process>(*rc::gen::inRange<std::int64_t>(-5'000, 5'000)));
    }

    void open(std::vector<std::size_t> members, bool reads) {
        // As in MPI_File_open: the first rank asks, all are told.
        const Generation generation = begin_generation(place_.directory).value();
        Handle handle{std::move(members), {}, generation.lock};
        for (std::size_t rank = 0; rank < handle.members.size(); ++rank) {
            Process& process = *processes_[handle.members[rank]];
            process.clock.adopt(generation.after);
            const auto groups = std::max<std::int64_t>(1, place_.header_file.shape.count);
            handle.roles.push_back({reads, true, static_cast<std::int32_t>(rank % static_cast<std::size_t>(groups)),
                                    static_cast<std::uint32_t>(rank), generation.number});
            handle.roles.back().waits = *rc::gen::arbitrary<bool>();
            if (process.container)
                RC_ASSERT(!process.container->join(handle.roles.back()).has_value());
            else
                process.container = place_.open(handle.roles.back(), process.clock);
            ++process.handles;
        }
        handles_.push_back(std::move(handle));
    }
    void sync(const Handle& handle) {
        for (const std::size_t member : handle.members) RC_ASSERT(of(member).flush(false) == 0);
        RC_ASSERT(of(handle.members.front()).look_around() == 0);
        agree(handle);
    }
    void close(std::size_t number) {
        const Handle handle = handles_[number];
        handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(number));
        Left all;
        for (std::size_t i = 0; i < handle.members.size(); ++i) {
            Left left;
            RC_ASSERT(of(handle.members[i]).leave(handle.roles[i], &left) == 0);
            all += left;
        }
        agree(handle);
        if (!place_.directory.has_index())
            RC_ASSERT(keep_sizes(place_.directory, read_subfiles(place_.directory).value(),
                                 handle.roles.front().generation) == 0);
        RC_ASSERT(end_generation(place_.directory, handle.roles.front().generation,
                                 processes_[handle.members.front()]->clock.last(), all) == 0);
        for (const std::size_t member : handle.members) {
            if (--processes_[member]->handles == 0) processes_[member]->container.reset();
        }
    }
    void set_length(const Handle& handle, std::int64_t length) {
        for (const std::size_t member : handle.members) RC_ASSERT(of(member).flush(false) == 0);
        agree(handle);
        RC_ASSERT(of(handle.members.front()).set_length(length) == 0);
        agree(handle);
    }
    Container& of(std::size_t process) { return *processes_[process]->container; }
    std::vector<Handle>& handles() { return handles_; }
    Handle& any_handle() { return handles_[*rc::gen::inRange<std::size_t>(0, handles_.size())]; }

private:
    void agree(const Handle& handle) {
        Stamp largest = 0;
        for (const std::size_t member : handle.members) largest = std::max(largest, of(member).last_stamp());
        for (const std::size_t member : handle.members) of(member).adopt(largest);
    }

    Place& place_;
    std::vector<std::unique_ptr<Process>> processes_;
    std::vector<Handle> handles_;
};

std::vector<std::size_t> some_of(std::size_t processes) {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < processes; ++i) {
        if (*rc::gen::inRange(0, 3) != 0) members.push_back(i);
    }
    if (members.empty()) members.push_back(*rc::gen::inRange<std::size_t>(0, processes));
    return members;
}

void holds_what_a_plain_file_would(Shape shape) {
    Place place(shape, *rc::gen::inRange(oldest_version, newest_version + 1));
    std::string model;
    for (int job = 0; job < *rc::gen::inRange(1, 4); ++job) {
        const auto processes = *rc::gen::inRange<std::size_t>(1, 5);
        World world(place, processes);
        const bool reads = *rc::gen::arbitrary<bool>();
        world.open(some_of(processes), reads);
        for (int step = 0; step < *rc::gen::inRange(0, 16); ++step) {
            // Whose turn it is has synced after the one before has: by handles that need have nobody else in common.
            Handle turn = world.any_handle();
            world.sync(turn);
            const std::size_t now = turn.members[*rc::gen::inRange<std::size_t>(0, turn.members.size())];
            Container& writer = world.of(now);
            RC_ASSERT(writer.length() == std::ssize(model));
            if (reads) RC_ASSERT(read_all(writer, most + 60) == model);
            for (int i = 0; i < *rc::gen::inRange(0, 6); ++i) {
                const auto offset = *rc::gen::inRange<std::int64_t>(0, most);
                const auto length = *rc::gen::inRange<std::int64_t>(1, 40);
                const std::string data(static_cast<std::size_t>(length),
                                       static_cast<char>('a' + *rc::gen::inRange(0, 26)));
                RC_ASSERT(writer.write_at(-1, data.data(), length, offset).error == 0);
                if (std::ssize(model) < offset + length) model.resize(static_cast<std::size_t>(offset + length), '\0');
                model.replace(static_cast<std::size_t>(offset), data.size(), data);
                if (reads) RC_ASSERT(read_all(writer, most + 60) == model);
            }
            RC_ASSERT(writer.length() == std::ssize(model));
            switch (*rc::gen::inRange(0, 6)) {
                case 0: {
                    const auto length = *rc::gen::inRange<std::int64_t>(0, most + 40);
                    world.set_length(turn, length);
                    model.resize(static_cast<std::size_t>(length), '\0');
                    break;
                }
                case 1:
                    world.sync(turn);
                    world.open(some_of(processes), reads);
                    break;
                case 2:
                    world.sync(turn);
                    if (world.handles().size() > 1) {
                        world.close(*rc::gen::inRange<std::size_t>(0, world.handles().size()));
                    }
                    break;
                default:
                    world.sync(turn);  // by this handle, or by another that the process has
                    break;
            }
        }
        while (!world.handles().empty()) world.close(*rc::gen::inRange<std::size_t>(0, world.handles().size()));
        auto reader = place.open({true, false, 0, 0, 0});
        RC_ASSERT(read_all(*reader, most + 60) == model);
    }
    const auto described = describe(place.path).value();
    RC_ASSERT(described.problems.empty());
    RC_ASSERT(described.bytes == std::ssize(model));
    RC_ASSERT(merge(place.backend, place.path, place.folder + "/merged").value() == std::ssize(model));
    RC_ASSERT(slurp(place.folder + "/merged") == model);
    RC_ASSERT(std::filesystem::exists(place.directory.path));
    RC_ASSERT(merge(place.backend, place.path, place.path).value() == std::ssize(model));
    RC_ASSERT(slurp(place.path) == model);
    RC_ASSERT(!std::filesystem::exists(place.directory.path));
}

RC_GTEST_PROP(Container, GroupedHoldsWhatAPlainFileWould, ()) {
    holds_what_a_plain_file_would({*rc::gen::inRange<std::int64_t>(1, 4), Shape::Kind::grouped});
}

RC_GTEST_PROP(Container, LogsHoldWhatAPlainFileWould, ()) { holds_what_a_plain_file_would({0, Shape::Kind::log}); }

RC_GTEST_PROP(Container, SubfilesHoldWhatAPlainFileWould, ()) {
    holds_what_a_plain_file_would(
        {*rc::gen::inRange<std::int64_t>(1, 5), Shape::Kind::subfiles, *rc::gen::inRange<std::int64_t>(1, 50)});
}

/// Sync, barrier, sync: through handles that have no process in common, with clocks that say the opposite.
TEST(Container, SyncedLaterHoldsWhateverTheClocksSay) {
    for (const Shape shape : {Shape{2, Shape::Kind::grouped}, Shape{0, Shape::Kind::log}}) {
        for (const std::int64_t late : {std::int64_t{0}, std::int64_t{3'600'000'000'000}}) {
            Place place(shape);
            Clock ahead([&] { return std::int64_t{5'000'000'000'000} + late; });
            Clock behind([] { return std::int64_t{5'000'000'000'000}; });
            const auto first = begin_generation(place.directory).value();
            const auto second = begin_generation(place.directory).value();
            const Role mine{false, true, 0, 0, first.number};
            const Role theirs{false, true, 1, 0, second.number};
            auto early = place.open(mine, ahead);
            auto later = place.open(theirs, behind);
            ASSERT_EQ(early->write_at(-1, "early", 5, 0).error, 0);
            ASSERT_EQ(early->flush(false), 0);
            // Without a sync in between there is no order; with one there is.
            ASSERT_EQ(later->look_around(), 0);
            ASSERT_EQ(later->write_at(-1, "later", 5, 0).error, 0);
            ASSERT_EQ(later->leave(theirs), 0);
            ASSERT_EQ(end_generation(place.directory, second.number, behind.last(), {}), 0);
            ASSERT_EQ(early->leave(mine), 0);
            ASSERT_EQ(end_generation(place.directory, first.number, ahead.last(), {}), 0);
            auto reader = place.open({true, false, 0, 0, 0});
            EXPECT_EQ(read_all(*reader, 10), "later");
            // And the next job is after both, whatever its clock.
            Clock slow([] { return std::int64_t{7}; });
            const auto third = begin_generation(place.directory).value();
            slow.adopt(third.after);
            const Role next{false, true, 0, 0, third.number};
            auto again = place.open(next, slow);
            ASSERT_EQ(again->write_at(-1, "again", 5, 0).error, 0);
            ASSERT_EQ(again->leave(next), 0);
            ASSERT_EQ(reader->flush(false), 0);
            EXPECT_EQ(read_all(*reader, 10), "again");
        }
    }
}

/// Processes on one node that take turns without a word to ioweir but "I may have waited" (as in collective calls): nothing is flushed
/// before the end, and then in any order.
void turns_are_seen(Shape shape) {
    Place place(shape);
    const auto processes = *rc::gen::inRange<std::size_t>(1, 5);
    std::int64_t time = 1'000'000;
    std::vector<std::unique_ptr<Container>> all;
    std::vector<Role> roles;
    const Generation generation = begin_generation(place.directory).value();
    const auto groups = std::max<std::int64_t>(1, shape.count);
    std::vector<std::unique_ptr<Clock>> own;
    for (std::size_t rank = 0; rank < processes; ++rank) {
        own.push_back(std::make_unique<Clock>([&] { return time; }));
        roles.push_back({*rc::gen::arbitrary<bool>(), true,
                         static_cast<std::int32_t>(rank % static_cast<std::size_t>(groups)),
                         static_cast<std::uint32_t>(rank), generation.number});
        all.push_back(place.open(roles.back(), *own.back()));
    }
    std::string model;
    for (int turn = 0; turn < *rc::gen::inRange(1, 60); ++turn) {
        for (const auto& container : all) container->begin_batch();
        time += 1000;
        const std::size_t now = *rc::gen::inRange<std::size_t>(0, processes);
        for (int i = 0; i < *rc::gen::inRange(1, 4); ++i) {
            const auto offset = *rc::gen::inRange<std::int64_t>(0, 200);
            const std::string data(*rc::gen::inRange<std::size_t>(1, 60), static_cast<char>('a' + (3 * turn + i) % 26));
            RC_ASSERT(all[now]->write_at(-1, data.data(), std::ssize(data), offset).error == 0);
            model.resize(std::max(model.size(), static_cast<std::size_t>(offset) + data.size()), '\0');
            model.replace(static_cast<std::size_t>(offset), data.size(), data);
            time += *rc::gen::element<std::int64_t>(10, 100'000);  // the second is longer than a batch goes on
        }
    }
    Left sum;
    while (!all.empty()) {
        Left left;
        const std::size_t next = *rc::gen::inRange<std::size_t>(0, all.size());
        const auto at = static_cast<std::ptrdiff_t>(next);
        RC_ASSERT(all[next]->leave(roles[next], &left) == 0);
        sum += left;
        all.erase(all.begin() + at);
        roles.erase(roles.begin() + at);
    }
    RC_ASSERT(end_generation(place.directory, generation.number, time, sum) == 0);
    auto reader = place.open({true, false, 0, 0, 0});
    RC_ASSERT(read_all(*reader, 300) == model);
}

RC_GTEST_PROP(Container, TurnsOfRanksInGroupsAreInOrder, ()) {
    // A process for each group: two of one group write to one file, where their turns are in order anyway.
    turns_are_seen({*rc::gen::inRange<std::int64_t>(1, 5), Shape::Kind::grouped});
}

RC_GTEST_PROP(Container, TurnsOfRanksInLogsAreInOrder, ()) { turns_are_seen({0, Shape::Kind::log}); }

/// An index does not grow with the time that a program takes to write.
TEST(Container, AnHourOfWritingHasFewBatches) {
    Place place(Shape{0, Shape::Kind::log});
    std::int64_t time = 1'000'000;
    Clock clock([&] { return time; });
    const Generation generation = begin_generation(place.directory).value();
    const Role role{false, true, 0, 0, generation.number};
    auto log = place.open(role, clock);
    constexpr std::int64_t writes = 100'000, hour = 3'600'000'000'000;
    for (std::int64_t i = 0; i < writes; ++i) {
        log->begin_call();
        ASSERT_EQ(log->write_at(-1, "x", 1, 2 * i).error, 0);
        time += hour / writes;
    }
    Left left;
    ASSERT_EQ(log->leave(role, &left), 0);
    EXPECT_LT(left.bytes, 2'600 * (56 + 2 * 48)) << "written one by one they would be " << writes * (56 + 48);
}

/// What a job that died has left is before what the next one writes, though nobody could say so at its end.
TEST(Container, ADeadJobsStampsAreReadFromItsIndex) {
    Place place(1);
    Clock ahead([] { return std::int64_t{9'000'000'000'000}; });
    const auto dead = begin_generation(place.directory).value();
    auto writer = place.open({false, true, 0, 0, dead.number}, ahead);
    ASSERT_EQ(writer->write_at(-1, "dead", 4, 0).error, 0);
    ASSERT_EQ(writer->flush(false), 0);
    writer.reset();
    Clock behind([] { return std::int64_t{5}; });
    const auto next = begin_generation(place.directory).value();
    EXPECT_EQ(next.after, ahead.last());
    behind.adopt(next.after);
    auto again = place.open({true, true, 0, 0, next.number}, behind);
    ASSERT_EQ(again->write_at(-1, "next", 4, 0).error, 0);
    ASSERT_EQ(again->flush(false), 0);
    EXPECT_EQ(read_all(*again, 10), "next");
}

/// A cut comes after what other opens have shown, though it reads no pieces and its clock is behind theirs.
TEST(Container, ALogsCutHidesWhatAnotherOpenHasShown) {
    Place place({0, Shape::Kind::log});
    Clock ahead([] { return std::int64_t{9'000'000'000'000}; });
    Clock behind([] { return std::int64_t{5}; });
    const auto one = begin_generation(place.directory).value();
    const auto two = begin_generation(place.directory).value();
    auto cuts = place.open({true, true, 0, 0, one.number}, behind);
    auto writes = place.open({true, true, 0, 1, two.number}, ahead);
    ASSERT_EQ(writes->write_at(-1, "gone", 4, 0).error, 0);
    ASSERT_EQ(writes->flush(false), 0);
    ASSERT_EQ(cuts->set_length(2), 0);
    EXPECT_EQ(cuts->length(), 2);
    EXPECT_EQ(read_all(*cuts, 10), "go");
    ASSERT_EQ(cuts->set_length(3), 0) << "and it may grow";
    EXPECT_EQ(cuts->length(), 3);
    EXPECT_EQ(read_all(*cuts, 10), std::string("go\0", 3));
}

TEST(Generations, TheEndedOnesSayTheLargestStampAlsoWhenTheyEndInAnotherOrder) {
    Place place(1);
    const auto numbers = {begin_generation(place.directory).value().number,
                          begin_generation(place.directory).value().number,
                          begin_generation(place.directory).value().number};
    ASSERT_EQ(std::vector<std::uint32_t>(numbers), (std::vector<std::uint32_t>{1, 2, 3}));
    EXPECT_EQ(end_generation(place.directory, 2, 500, {0, 0}), 0);
    EXPECT_EQ(end_generation(place.directory, 3, 300, {0, 0}), 0) << "its file stands for the second one's, too";
    EXPECT_EQ(largest_stamp(place.directory, {}).value(), 500);
    EXPECT_EQ(end_generation(place.directory, 1, 700, {0, 0}), 0);
    EXPECT_EQ(largest_stamp(place.directory, {}).value(), 700);
    const auto next = begin_generation(place.directory).value();
    EXPECT_EQ(next.number, 4U);
    EXPECT_EQ(next.after, 700);
    EXPECT_EQ(end_generation(place.directory, 4, 800, {0, 0}), 0);
    EXPECT_EQ(largest_stamp(place.directory, {}).value(), 800);
    EXPECT_FALSE(std::filesystem::exists(place.directory.path + "/closed.3"));
    // A file that says nothing is no lie: the indexes are read.
    spill(place.directory.path + "/closed.4", "stamp 00000");
    spill(place.directory.index(0, 4, 9), encode({{790, 4, 9}, 0, {}}, place.directory.identity()));
    EXPECT_EQ(largest_stamp(place.directory, {}).value(), 790);
    EXPECT_FALSE(generations_in(place.directory).ok()) << "but a reader must know what is to be there";
}

}  // namespace
}  // namespace ioweir::container
