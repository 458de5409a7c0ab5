// Jobs that die, and later ones that write over what they have left: when is nothing missing any more? Against an oracle that knows
// each byte.
#include "container/sharing/replaced.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "container/merge.hpp"
#include "container/testing.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;

/// A job of some ranks, as the engine opens, syncs and closes a file.
class Job {
public:
    Job(Place& place, std::size_t ranks) : place_(place) {
        const Generation generation = begin_generation(place.directory).value();
        lock_ = generation.lock;
        after_dead = generation.after_dead;
        place.clock.adopt(generation.after);
        const auto groups = std::max<std::int64_t>(1, place.header_file.shape.count);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            clocks_.push_back(std::make_unique<Clock>());
            clocks_.back()->adopt(generation.after);
            roles_.push_back({false, true, static_cast<std::int32_t>(rank % static_cast<std::size_t>(groups)),
                              static_cast<std::uint32_t>(rank), generation.number, "", generation.after_dead});
            all_.push_back(place.open(roles_.back(), *clocks_.back()));
        }
    }
    void write(std::size_t rank, std::int64_t offset, const std::string& text) {
        ASSERT_EQ(all_[rank]->write_at(-1, text.data(), std::ssize(text), offset).error, 0);
    }
    void sync() {
        Stamp largest = 0;
        for (const auto& one : all_) {
            ASSERT_EQ(one->flush(true), 0);
            largest = std::max(largest, one->last_stamp());
        }
        for (const auto& one : all_) one->adopt(largest);
    }
    void set_length(std::int64_t bytes) {
        sync();
        ASSERT_EQ(all_.front()->set_length(bytes), 0);
        sync();
    }
    void end() {
        Left sum;
        Stamp last = 0;
        for (std::size_t rank = 0; rank < all_.size(); ++rank) {
            Left left;
            ASSERT_EQ(all_[rank]->leave(roles_[rank], &left), 0);
            sum += left;
            last = std::max(last, all_[rank]->last_stamp());
        }
        place_.clock.adopt(last);
        all_.clear();
        ASSERT_EQ(place_.end(roles_.front().generation, sum), 0);
        lock_ = nullptr;
    }
    /// What it has not synced is nowhere.
    void die() {
        all_.clear();
        lock_ = nullptr;
    }
    [[nodiscard]] std::uint32_t generation() const { return roles_.front().generation; }

    bool after_dead = false;

private:
    Place& place_;
    std::shared_ptr<const GenerationLock> lock_;
    std::vector<std::unique_ptr<Clock>> clocks_;
    std::vector<Role> roles_;
    std::vector<std::unique_ptr<Container>> all_;
};

std::vector<std::string> problems(const Place& place) { return describe(place.path).value().problems; }

std::string text_of(const Place& place) {
    Place& writable = const_cast<Place&>(place);
    return read_all(*writable.open({true, false, 0, 0, 0}), 1000);
}

class Replaced : public testing::TestWithParam<Shape> {};

TEST_P(Replaced, ByAJobThatWritesEveryByteAgain) {
    Place place(GetParam());
    Job dead(place, 2);
    dead.write(0, 0, std::string(40, 'a'));
    dead.write(1, 40, std::string(20, 'b'));
    dead.sync();
    dead.die();
    ASSERT_EQ(problems(place).size(), 1U);
    EXPECT_NE(problems(place)[0].find("begun and not ended (generation 1): its job has died"), std::string::npos);
    EXPECT_FALSE(merge(place.backend, place.path, place.path).ok());
    Job next(place, 3);
    EXPECT_TRUE(next.after_dead);
    for (std::size_t rank = 0; rank < 3; ++rank)
        next.write(rank, static_cast<std::int64_t>(20 * rank), std::string(20, 'x'));
    next.end();
    EXPECT_EQ(problems(place), std::vector<std::string>());
    EXPECT_EQ(describe(place.path).value().open, std::vector<std::uint32_t>());
    EXPECT_EQ(text_of(place), std::string(60, 'x'));
    for (const auto& entry : fs::directory_iterator(place.directory.path))
        EXPECT_FALSE(is_written_file(entry.path().filename())) << "nobody needs it any more";
    // And the one after that does not look back.
    Job last(place, 1);
    EXPECT_FALSE(last.after_dead);
    EXPECT_GT(last.generation(), next.generation());
    last.write(0, 10, "last");
    last.end();
    EXPECT_EQ(problems(place), std::vector<std::string>());
    EXPECT_EQ(merge(place.backend, place.path, place.path).value(), 60);
    EXPECT_FALSE(fs::exists(place.directory.path));
}

TEST_P(Replaced, ByTwoJobsTogether) {
    Place place(GetParam());
    Job first(place, 1);
    first.write(0, 0, std::string(50, 'f'));
    first.end();
    Job dead(place, 1);
    dead.write(0, 10, "lost");
    dead.die();
    Job one(place, 1);
    one.write(0, 0, std::string(30, '1'));
    one.end();
    ASSERT_EQ(problems(place).size(), 1U);
    EXPECT_NE(problems(place)[0].find("and bytes 30 to 49 were not written again since"), std::string::npos)
        << problems(place)[0];
    Job two(place, 1);
    two.write(0, 25, std::string(25, '2'));
    two.end();
    EXPECT_EQ(problems(place), std::vector<std::string>());
    EXPECT_EQ(text_of(place), std::string(25, '1') + std::string(25, '2'));
}

TEST_P(Replaced, ByOneThatBeginsAnewWithASizeOfNothing) {
    Place place(GetParam());
    Job dead(place, 1);
    dead.write(0, 0, std::string(50, 'd'));
    dead.sync();
    dead.die();
    Job next(place, 2);
    next.set_length(0);
    next.write(1, 20, "short");
    next.end();
    EXPECT_EQ(problems(place), std::vector<std::string>()) << "bytes 0 to 19 are zeros, and nobody's";
    EXPECT_EQ(text_of(place), std::string(20, '\0') + "short");
}

TEST_P(Replaced, ByOneThatCutsAnEmptyFileToNothing) {
    Place place(GetParam());
    Job dead(place, 1);
    dead.die();
    Job next(place, 1);
    next.set_length(0);
    next.write(0, 5, "x");
    next.end();
    EXPECT_EQ(problems(place), std::vector<std::string>());
}

TEST_P(Replaced, NotByOneThatDiesItself) {
    Place place(GetParam());
    Job dead(place, 1);
    dead.write(0, 0, "dead");
    dead.die();
    Job next(place, 1);
    next.write(0, 0, "next");
    next.sync();
    next.die();
    EXPECT_EQ(problems(place).size(), 2U);
    Job last(place, 1);
    last.write(0, 0, "last");
    last.end();
    EXPECT_EQ(problems(place), std::vector<std::string>());
    EXPECT_EQ(text_of(place), "last");
}

TEST_P(Replaced, NotWhatALivingJobMayStillWrite) {
    Place place(GetParam());
    Job living(place, 1);
    living.write(0, 0, "living");
    Job other(place, 1);
    EXPECT_FALSE(other.after_dead);
    other.write(0, 0, std::string(20, 'o'));
    other.end();
    ASSERT_EQ(problems(place).size(), 1U);
    EXPECT_NE(problems(place)[0].find("a job still writes"), std::string::npos);
    living.write(0, 30, "more");
    living.end();
    EXPECT_EQ(problems(place), std::vector<std::string>());
}

/// One that was there when the later one began may have written after it.
TEST_P(Replaced, NotByOneThatWasBegunWhileItLived) {
    Place place(GetParam());
    Job dies(place, 1);
    Job early(place, 1);
    early.write(0, 0, std::string(20, 'e'));
    dies.write(0, 3, "dies");
    dies.die();
    early.end();
    EXPECT_EQ(problems(place).size(), 1U);
    Job late(place, 1);
    late.write(0, 0, std::string(20, 'l'));
    late.end();
    EXPECT_EQ(problems(place), std::vector<std::string>());
}

/// Where locks do not reach from node to node, a living one is taken for dead; it ends as ever.
TEST_P(Replaced, WhoWasTakenForDeadMayEnd) {
    Place place(GetParam());
    Job living(place, 1);
    living.write(0, 0, "12345678");
    ASSERT_EQ(put_aside(place.directory, living.generation()), 0);
    Job other(place, 1);
    other.write(0, 0, std::string(20, 'o'));
    other.end();
    living.end();
    EXPECT_EQ(problems(place), std::vector<std::string>());
    EXPECT_EQ(generations_in(place.directory).value().replaced, std::vector<std::uint32_t>());
}

/// Random jobs, some of which die. A byte is certain for a dead job once a job that began after its death, and ended, wrote it or cut it
/// off. When a job ends, those dead ones are forgotten for whom all bytes of the file are certain.
void is_whole_when_every_byte_is_certain(Shape shape) {
    constexpr std::int64_t most = 60;
    using Certain = std::vector<bool>;
    Place place(shape);
    std::vector<Certain> dead;
    const int jobs = *rc::gen::inRange(2, 7);
    for (int number = 0; number < jobs; ++number) {
        const auto ranks = *rc::gen::inRange<std::size_t>(1, 4);
        Job job(place, ranks);
        RC_ASSERT(job.after_dead == !dead.empty());
        Certain written(most, false);
        const auto certain = [&](std::int64_t begin, std::int64_t end) {
            std::fill(written.begin() + begin, written.begin() + end, true);
        };
        const int steps = *rc::gen::inRange(1, 6);
        for (int step = 0; step < steps; ++step) {
            if (*rc::gen::inRange(0, 6) == 0) {
                const auto length = *rc::gen::inRange<std::int64_t>(0, most);
                job.set_length(length);
                certain(length, most);
                continue;
            }
            const auto offset = *rc::gen::inRange<std::int64_t>(0, most - 1);
            const auto length = *rc::gen::inRange<std::int64_t>(1, most - offset + 1);
            job.write(*rc::gen::inRange<std::size_t>(0, ranks), offset,
                      std::string(static_cast<std::size_t>(length), 'x'));
            certain(offset, offset + length);
            if (*rc::gen::inRange(0, 4) == 0) job.sync();
        }
        if (*rc::gen::inRange(0, 3) == 0) {
            job.die();
            dead.emplace_back(most, false);
        } else {
            job.end();
            const std::int64_t length = describe(place.path).value().bytes;
            for (Certain& one : dead)
                std::transform(one.begin(), one.end(), written.begin(), one.begin(), std::logical_or<>());
            std::erase_if(dead, [&](const Certain& one) {
                return std::all_of(one.begin(), one.begin() + length, [](bool is) { return is; });
            });
        }
        const auto described = describe(place.path).value();
        RC_ASSERT(described.open.size() == dead.size());
        RC_ASSERT(described.problems.size() == dead.size());
    }
}

RC_GTEST_PROP(ReplacedByRandomJobs, InGroups, ()) {
    is_whole_when_every_byte_is_certain({*rc::gen::inRange<std::int64_t>(1, 4), Shape::Kind::grouped});
}
RC_GTEST_PROP(ReplacedByRandomJobs, InLogs, ()) { is_whole_when_every_byte_is_certain({0, Shape::Kind::log}); }
RC_GTEST_PROP(ReplacedByRandomJobs, InSubfiles, ()) {
    is_whole_when_every_byte_is_certain(
        {*rc::gen::inRange<std::int64_t>(1, 4), Shape::Kind::subfiles, *rc::gen::inRange<std::int64_t>(1, 30)});
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Replaced, testing::Values(Shape{2}, Shape{0, Shape::Kind::log}, Shape{3, Shape::Kind::subfiles, 8}),
    [](const testing::TestParamInfo<Shape>& one) {
        const Shape::Kind kind = one.param.kind;
        return std::string(kind == Shape::Kind::grouped ? "grouped" : kind == Shape::Kind::log ? "log" : "subfiles");
    });

}  // namespace
}  // namespace ioweir::container
