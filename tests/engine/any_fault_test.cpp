// Any fault of the storage, of writing, flushing and reading, at any operation of any rank, with each strategy: the rank that it struck
// returns its class at once, every other rank in that call or at the next sync or close, what a call says it moved is where it belongs,
// and nothing else is changed. Written behind, in groups or to logs, an error may come later: at a later call, sync or close, once on every rank.
// Then the checks themselves: what goes wrong in silence is seen by comparing and by --verify.
//
// IOWEIR_TEST_RANKS_PER_NODE makes several nodes of the ranks. A hang is a failure by the test's time limit.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "fault_case.hpp"
#include "mapped_world.hpp"
#include "mpi_cases/random.hpp"

namespace ioweir {
namespace {

using storage::Fault;
using storage::FaultKind;

// Buffers of a few pieces each, so that a call of some hundred bytes takes several rounds.
constexpr const char* further_rules = R"(
[[file]]
match = "*.direct"
writers = "everyone"

[[file]]
match = "*.even"
writers = "aggregators:2"
buffer = 64

[[file]]
match = "*.all"
writers = "aggregators:99"
buffer = 40

[[file]]
match = "*.aligned"
writers = "aggregators:2"
domains = "aligned"
buffer = 50
stripe = { size = 32, count = 2 }

[[file]]
match = "*.cyclic"
writers = "aggregators:2"
domains = "cyclic"
buffer = 64
stripe = { size = 32, count = 2 }

[[file]]
match = "*.groups"
writers = "aggregators:auto"
domains = "group-cyclic"
buffer = 64
stripe = { size = 32, count = 2 }

[[file]]
match = "*.ordered"
writers = "aggregators:3"
order = "contention-free"
buffer = 60
stripe = { size = 30, count = 3 }

[[file]]
match = "*.exact"
writers = "aggregators:2"
domains = "cooperative"
order = "contention-free"
buffer = 48
stripe = { size = 24, count = 2 }

[[file]]
match = "*.behind"
writers = "behind:1"
visibility = "sync"

[[file]]
match = "*.behind2"
writers = "behind:2"
visibility = "sync"

[[file]]
match = "*.grouped"
mapping = "grouped:2"
visibility = "sync"
)";

const char* const ways[] = {"direct", "even",    "all",   "aligned", "cyclic",
                            "groups", "ordered", "exact", "dealt",   "striped"};
/// With these a write may fail after the call that made it has returned.
const char* const later_ways[] = {"behind", "grouped", "log", "behind2", "gathered", "collected"};
const char* const reading_ways[] = {"direct", "even",    "all",   "aligned",   "cyclic",  "groups", "ordered",
                                    "exact",  "grouped", "dealt", "collected", "striped", "log",    "gathered"};
const char* const every_way[] = {"direct",  "even",      "all",    "aligned", "cyclic",  "groups",
                                 "ordered", "exact",     "behind", "grouped", "behind2", "gathered",
                                 "log",     "collected", "dealt",  "striped"};

bool is_one_of(const std::string& way, std::initializer_list<const char*> some) {
    return std::find(some.begin(), some.end(), way) != some.end();
}
bool is_behind(const std::string& way) { return way.starts_with("behind"); }
/// Containers with an index, which is written by sync or close.
bool is_indexed(const std::string& way) { return is_one_of(way, {"grouped", "gathered", "log", "collected"}); }
bool is_divided(const std::string& way) { return is_indexed(way) || is_one_of(way, {"dealt", "striped"}); }
/// "everyone" writes for itself, aggregators:1 for its group of two, aggregators:2 of a log for anyone.
bool writes_for(const std::string& way, int writer, int rank) {
    const auto group = [](int one) { return one * 2 / world->ranks; };
    if (way == "collected") return true;
    return way == "gathered" ? group(writer) == group(rank) : writer == rank;
}

[[maybe_unused]] const testing::Environment* const registered = add_world(std::string(plan_of_parts) + further_rules);

struct Kind {
    FaultKind kind;
    int error;
    int error_class;
};
constexpr Kind writing_kinds[] = {{FaultKind::error, EIO, MPI_ERR_IO},
                                  {FaultKind::error, ENOSPC, MPI_ERR_NO_SPACE},
                                  {FaultKind::error, EDQUOT, MPI_ERR_QUOTA},
                                  {FaultKind::error, EINTR, MPI_SUCCESS},
                                  {FaultKind::shorten, 0, MPI_SUCCESS},
                                  {FaultKind::flush_error, EIO, MPI_ERR_IO},
                                  {FaultKind::flush_error, ENOSPC, MPI_ERR_NO_SPACE},
                                  {FaultKind::flush_error, EINTR, MPI_SUCCESS}};
constexpr Kind reading_kinds[] = {{FaultKind::read_error, EIO, MPI_ERR_IO},
                                  {FaultKind::read_error, EACCES, MPI_ERR_ACCESS},
                                  {FaultKind::read_error, EINTR, MPI_SUCCESS},
                                  {FaultKind::shorten_read, 0, MPI_SUCCESS}};
constexpr Kind silent_kinds[] = {{FaultKind::flip_bit, 0, 0}, {FaultKind::drop, 0, 0}, {FaultKind::swap, 0, 0}};

/// Attempts of every rank that a fault of the kind can strike.
enum class Attempts { writes, reads, flushes };
Attempts struck_by(FaultKind kind) {
    if (kind == FaultKind::flush_error) return Attempts::flushes;
    return kind == FaultKind::read_error || kind == FaultKind::shorten_read ? Attempts::reads : Attempts::writes;
}

class AnyFault : public FaultTest {
protected:
    std::vector<Answer> run(bool reading) { return reading ? read_all_calls(back_) : write_all_calls(); }

    /// How many attempts each rank makes without any fault.
    const std::vector<std::int64_t>& attempts(const std::string& way, bool reading, Attempts which) {
        auto& counts = counts_[way + (reading ? "r" : "w")];
        if (counts.empty()) {
            open_file("dry." + way, reading, is_divided(way));
            const auto take_all = [] {
                SwitchedBackend& backend = world->backend;
                return std::vector<std::int64_t>{backend.take_writes(), backend.take_reads(), backend.take_flushes()};
            };
            take_all();
            run(reading);
            if (!reading) world->hooks.File_sync(file_);  // what waits is written, and the index
            const std::vector<std::int64_t> mine = take_all();
            world->hooks.File_close(&file_);
            remove_file();
            counts.assign(3, std::vector<std::int64_t>(static_cast<std::size_t>(world->ranks)));
            for (std::size_t i = 0; i < 3; ++i)
                PMPI_Allgather(&mine[i], 1, MPI_INT64_T, counts[i].data(), 1, MPI_INT64_T, MPI_COMM_WORLD);
        }
        return counts[static_cast<std::size_t>(which)];
    }

    struct Chosen {
        int victim = -1;  ///< -1: no rank makes such an attempt
        Fault fault;
    };
    /// The same on every rank.
    Chosen choose(const std::string& way, bool reading, const Kind& kind, cases::Random& random) {
        const std::vector<std::int64_t>& counts = attempts(way, reading, struck_by(kind.kind));
        std::vector<int> able;
        for (int rank = 0; rank < world->ranks; ++rank)
            if (counts[static_cast<std::size_t>(rank)] > 0) able.push_back(rank);
        if (able.empty()) return {};
        const int victim = able[static_cast<std::size_t>(random.between(0, std::ssize(able) - 1))];
        // How many operations a writer's thread joins into one depends on how soon it comes: only the first is there in any case.
        const std::int64_t most = is_behind(way) ? 1 : counts[static_cast<std::size_t>(victim)];
        return {victim, {kind.kind, random.between(1, most), kind.error}};
    }

    /// On all ranks before any of them writes: a writer thread of this process may have another rank's bytes.
    static void arm(const Fault& fault) {
        world->backend.arm(fault);
        PMPI_Barrier(MPI_COMM_WORLD);
    }

    /// Runs with the fault and judges who returns what. The answers of all ranks, and this rank's bytes in back_.
    std::vector<Answer> judge(const Chosen& chosen, const Kind& kind, bool reading, bool at_close) {
        const bool victim = world->rank == chosen.victim;
        arm(victim ? chosen.fault : Fault{});
        const std::vector<Answer> answers = run(reading);
        if (victim) {
            EXPECT_GT(world->backend.struck(), 0);
        }
        world->backend.arm({});
        int failed = 0;
        for (const Answer& answer : answers) {
            EXPECT_TRUE(answer.error_class == MPI_SUCCESS || answer.error_class == kind.error_class)
                << answer.error_class;
            failed += answer.error_class != MPI_SUCCESS ? 1 : 0;
            if (answer.error_class == MPI_SUCCESS) {
                EXPECT_EQ(answer.bytes, bytes_a_call);
            }
        }
        EXPECT_LE(failed, 1);
        if (victim) {
            EXPECT_EQ(failed, kind.error_class != MPI_SUCCESS ? 1 : 0) << "at once, on the rank that it struck";
        }
        const int news = failed > 0 ? MPI_SUCCESS : kind.error_class;
        if (!at_close) {
            EXPECT_EQ(class_of(world->hooks.File_sync(file_)), news);
            EXPECT_EQ(world->hooks.File_sync(file_), MPI_SUCCESS) << "said once";
        }
        EXPECT_EQ(class_of(world->hooks.File_close(&file_)), at_close ? news : MPI_SUCCESS);
        EXPECT_EQ(handler_calls, kind.error_class != MPI_SUCCESS ? 1 : 0) << "on every rank, once";
        return gathered(answers);
    }

    /// The same where the error may come later: once on every rank, by whichever call. Returns what this rank's calls said.
    std::vector<Answer> judge_later(const Chosen& chosen, const Kind& kind, bool at_close) {
        const bool victim = world->rank == chosen.victim;
        arm(victim ? chosen.fault : Fault{});
        const std::vector<Answer> answers = run(false);
        int told = 0;
        const auto hear = [&](int error_class) {
            EXPECT_TRUE(error_class == MPI_SUCCESS || error_class == kind.error_class) << error_class;
            told += error_class != MPI_SUCCESS ? 1 : 0;
        };
        for (const Answer& answer : answers) {
            hear(answer.error_class);
            if (answer.error_class == MPI_SUCCESS) {
                EXPECT_EQ(answer.bytes, bytes_a_call);
            }
        }
        if (!at_close) {
            hear(class_of(world->hooks.File_sync(file_)));
            EXPECT_EQ(told, kind.error_class != MPI_SUCCESS ? 1 : 0) << "at sync at the latest, on every rank";
            EXPECT_EQ(world->hooks.File_sync(file_), MPI_SUCCESS) << "said once";
        }
        hear(class_of(world->hooks.File_close(&file_)));
        EXPECT_EQ(told, kind.error_class != MPI_SUCCESS ? 1 : 0) << "on every rank, once";
        EXPECT_EQ(handler_calls, told);
        if (victim) {
            EXPECT_GT(world->backend.struck(), 0);
        }
        world->backend.arm({});
        return answers;
    }

    /// Which bytes may be missing after a fault that came later or not: of whom, and of how many calls.
    void expect_missing(const std::string& way, const Chosen& chosen, const Kind& kind, bool at_close,
                        const std::vector<Answer>& all) const {
        const std::vector<std::vector<int>> missing = missing_bytes();
        const bool any_failed =
            std::any_of(all.begin(), all.end(), [](const Answer& answer) { return answer.error_class != MPI_SUCCESS; });
        int incomplete = 0;
        for (int r = 0; r < world->ranks; ++r) {
            for (int call = 0; call < calls; ++call) {
                if (missing[static_cast<std::size_t>(r)][static_cast<std::size_t>(call)] == 0) continue;
                ++incomplete;
                if (!is_indexed(way)) continue;
                // Bytes that could not be written are those of a call that says so. An index that could not be written is written
                // by the next sync or close, if there is one.
                const Answer& answer = all[static_cast<std::size_t>(r * calls + call)];
                EXPECT_TRUE(any_failed ? answer.error_class != MPI_SUCCESS
                                       : at_close && writes_for(way, chosen.victim, r))
                    << "rank " << r << ", call " << call;
            }
        }
        if (kind.error_class == MPI_SUCCESS) {
            EXPECT_EQ(incomplete, 0);
        } else if (is_behind(way)) {
            EXPECT_EQ(incomplete, 1) << "the rest of one call is dropped, all others are written";
        }
    }

    std::string back_;

private:
    std::map<std::string, std::vector<std::vector<std::int64_t>>> counts_;
};

std::string words(std::uint64_t i, const char* way, int victim, const Fault& fault) {
    return "case " + std::to_string(i) + ", " + way + ": rank " + std::to_string(victim) + ", kind " +
           std::to_string(static_cast<int>(fault.kind)) + ", number " + std::to_string(fault.nth) + ", errno " +
           std::to_string(fault.error);
}

TEST_F(AnyFault, OfWritingIsToldAndChangesNothingElse) {
    std::int64_t struck = 0;
    const std::uint64_t tries = world->cases * 2;
    for (std::uint64_t i = 0; i < tries; ++i) {
        cases::Random random(41, i);
        const char* const way = ways[i % std::size(ways)];
        const Kind& kind = writing_kinds[i / std::size(ways) % std::size(writing_kinds)];
        const Chosen chosen = choose(way, false, kind, random);
        if (chosen.victim < 0) continue;
        SCOPED_TRACE(words(i, way, chosen.victim, chosen.fault));
        open_file(std::string("write.") + way, false, is_divided(way));
        const std::vector<Answer> all = judge(chosen, kind, false, random.one_in(2));
        expect_nothing_else(all);
        remove_file();
        ++struck;
        if (on_any_rank(HasFailure())) return;
    }
    EXPECT_GE(struck, static_cast<std::int64_t>(tries / 2)) << "only flushes have no place in some strategies";
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0);
}

TEST_F(AnyFault, OfWritingBehindOrInGroupsIsToldOnceByThenAndChangesNothingElse) {
    std::map<std::string, std::int64_t> struck;
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        cases::Random random(44, i);
        const std::string way = later_ways[i % std::size(later_ways)];
        const Kind& kind = writing_kinds[i / std::size(later_ways) % std::size(writing_kinds)];
        const Chosen chosen = choose(way, false, kind, random);
        if (chosen.victim < 0) continue;
        const bool at_close = random.one_in(2);
        SCOPED_TRACE(words(i, way.c_str(), chosen.victim, chosen.fault) + (at_close ? ", close" : ", sync"));
        open_file("later." + way, false, is_divided(way));
        const std::vector<Answer> all = gathered(judge_later(chosen, kind, at_close));
        expect_missing(way, chosen, kind, at_close, all);
        remove_file();
        ++struck[way];
        if (on_any_rank(HasFailure())) return;
    }
    for (const char* const way : later_ways) EXPECT_GT(struck[way], 0) << way;
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0);
}

TEST_F(AnyFault, OfReadingIsToldAndChangesNothing) {
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        cases::Random random(42, i);
        const char* const way = reading_ways[i % std::size(reading_ways)];
        const Kind& kind = reading_kinds[i / std::size(reading_ways) % std::size(reading_kinds)];
        const Chosen chosen = choose(way, true, kind, random);
        ASSERT_GE(chosen.victim, 0) << way;
        SCOPED_TRACE(words(i, way, chosen.victim, chosen.fault));
        open_file(std::string("read.") + way, true, is_divided(way));
        const std::vector<Answer> all = judge(chosen, kind, true, random.one_in(2));
        int wrong = 0;
        for (int byte = 0; byte < bytes_a_rank; ++byte) {
            const auto mine = static_cast<std::size_t>(world->rank * calls + byte / bytes_a_call);
            const char there = back_[static_cast<std::size_t>(byte)];
            const bool failed = all[mine].error_class != MPI_SUCCESS;
            wrong += there != value_of(world->rank, byte) && !(failed && there == '?');
        }
        EXPECT_EQ(wrong, 0) << "bytes that are not the file's";
        EXPECT_EQ(file_bytes(), whole_file());
        remove_file();
        if (on_any_rank(HasFailure())) return;
    }
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0);
}

// A flipped bit, a lost write, two writes with each other's bytes, at any write of any rank.
TEST_F(AnyFault, InSilenceIsSeenByComparingAndByVerify) {
    std::map<FaultKind, std::int64_t> tried, seen;
    const std::uint64_t tries =
        std::max<std::uint64_t>(2 * world->cases, std::size(every_way) * std::size(silent_kinds));
    for (std::uint64_t i = 0; i < tries; ++i) {
        cases::Random random(43, i);
        const char* const way = every_way[i % std::size(every_way)];
        const Kind& kind = silent_kinds[i / std::size(every_way) % std::size(silent_kinds)];
        const Chosen chosen = choose(way, false, kind, random);
        ASSERT_GE(chosen.victim, 0) << way;
        SCOPED_TRACE(words(i, way, chosen.victim, chosen.fault));
        open_file(std::string("silent.") + way, false, is_divided(way));
        world->notes.clear();
        world->work.clear();  // of a file whose beginning the engine has written, too
        arm(world->rank == chosen.victim ? chosen.fault : Fault{});
        for (const Answer& answer : write_all_calls()) EXPECT_EQ(answer.error_class, MPI_SUCCESS);
        EXPECT_EQ(world->hooks.File_close(&file_), MPI_SUCCESS);
        const bool struck = on_any_rank(world->backend.struck() > 0);
        EXPECT_TRUE(struck);
        world->backend.arm({});
        // A damaged index is an error for whoever opens the file next, and for --verify, too.
        const bool differs = file_bytes() != whole_file();
        ++tried[kind.kind];
        seen[kind.kind] += differs ? 1 : 0;
        // Two writes may have the same bytes by chance; then nothing is wrong.
        EXPECT_TRUE(differs || kind.kind == FaultKind::swap);
        if (world->rank == 0) {
            EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), differs ? 1 : 0);
            EXPECT_EQ(world->count(format::NoteCode::verify_ok), differs ? 0 : 1);
        }
        remove_file();
        if (on_any_rank(HasFailure())) return;
    }
    EXPECT_GE(seen[FaultKind::swap], tried[FaultKind::swap] * 9 / 10) << "of " << tried[FaultKind::swap];
    EXPECT_GT(tried[FaultKind::swap], 0);
}

}  // namespace
}  // namespace ioweir
