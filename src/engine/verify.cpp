// --verify: does the file hold what the program passed in? After the real close every rank reads back what it wrote through the
// handle. A mismatch is no error if a later write of another rank explains it: that rank's bytes overlap and check out, or are
// themselves explained so. What the MPI library wrote, or the program by other means, is not known here.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/standard_error.hpp"
#include "engine/mapped.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

using layout::Extent;
using layout::ExtentList;

struct RankExtent {
    Extent extent;
    std::int64_t rank;
};

/// Every rank's wrong extents, on every rank, in order of ranks.
std::vector<RankExtent> gather_wrong(const Handle& handle, const ExtentList& wrong) {
    std::vector<RankExtent> all;
    if (handle.size == 1) {
        for (const Extent& extent : wrong) all.push_back({extent, 0});
        return all;
    }
    int mine = static_cast<int>(2 * wrong.size());
    std::vector<int> counts(static_cast<std::size_t>(handle.size)), starts(static_cast<std::size_t>(handle.size));
    PMPI_Allgather(&mine, 1, MPI_INT, counts.data(), 1, MPI_INT, handle.comm);
    int total = 0;
    for (std::size_t r = 0; r < counts.size(); ++r) {
        starts[r] = total;
        total += counts[r];
    }
    std::vector<std::int64_t> flat, gathered(static_cast<std::size_t>(total));
    for (const Extent& extent : wrong) flat.insert(flat.end(), {extent.offset, extent.length});
    PMPI_Allgatherv(flat.data(), mine, MPI_INT64_T, gathered.data(), counts.data(), starts.data(), MPI_INT64_T,
                    handle.comm);
    for (std::size_t r = 0; r < counts.size(); ++r) {
        for (int i = 0; i < counts[r]; i += 2) {
            const auto at = static_cast<std::size_t>(starts[r] + i);
            all.push_back({{gathered[at], gathered[at + 1]}, static_cast<std::int64_t>(r)});
        }
    }
    return all;
}

/// Which of all wrong extents are explained. The same on every rank.
std::vector<std::int32_t> explain(const Handle& handle, const std::vector<RankExtent>& wrong,
                                  const ExtentList& mine_sound) {
    std::vector<std::int32_t> explained(wrong.size(), 0);
    for (std::size_t i = 0; i < wrong.size(); ++i) {
        const ExtentList one{wrong[i].extent};
        explained[i] = wrong[i].rank != handle.rank && layout::overlaps(mine_sound, one) ? 1 : 0;
    }
    if (handle.size > 1) {
        PMPI_Allreduce(MPI_IN_PLACE, explained.data(), static_cast<int>(explained.size()), MPI_INT32_T, MPI_MAX,
                       handle.comm);
    }
    // A overwritten by B overwritten by C: what explains B's mismatch shows that B did write there, after A. Repeated until
    // nothing changes; extents of one rank are disjoint, so chains are short.
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < wrong.size(); ++i) {
            if (explained[i] != 0) continue;
            for (std::size_t j = 0; j < wrong.size() && explained[i] == 0; ++j) {
                if (explained[j] == 0 || wrong[i].rank == wrong[j].rank) continue;
                if (!layout::intersect(wrong[i].extent, wrong[j].extent).empty()) explained[i] = changed = true;
            }
        }
    }
    return explained;
}

struct Sums {
    std::int64_t checked_bytes, unchecked_bytes, wrong_extents, passed_writes;
};

Sums add_up(const Handle& handle, Sums mine) {
    if (handle.size == 1) return mine;
    std::array<std::int64_t, 4> out{},
        in{mine.checked_bytes, mine.unchecked_bytes, mine.wrong_extents, mine.passed_writes};
    PMPI_Allreduce(in.data(), out.data(), static_cast<int>(in.size()), MPI_INT64_T, MPI_SUM, handle.comm);
    return {out[0], out[1], out[2], out[3]};
}

void say_wrong(const Engine& engine, const Handle& handle, const ExtentList& places, std::int64_t rank,
               const Sums& sums) {
    const std::int64_t bytes = layout::total_bytes(places).value_or(0);
    const std::string where = std::to_string(places.size()) + " place(s) of together " + std::to_string(bytes) +
                              " bytes, the first at offset " + std::to_string(places.front().offset) + " (" +
                              std::to_string(places.front().length) + " bytes, written by rank " +
                              std::to_string(rank) + ")";
    if (sums.passed_writes > 0) {
        note(engine, format::NoteCode::message, handle.path, bytes,
             "verify cannot tell: " + where + " changed, and " + std::to_string(sums.passed_writes) +
                 " writes went to the MPI library");
        return;
    }
    note(engine, format::NoteCode::verify_mismatch, handle.path, bytes, where);
    say_line("ioweir: verify: " + handle.path + " does not hold what the program wrote: " + where +
             "; do not use this file, and switch the plan off for it\n");
}

}  // namespace

void verify_written(Engine& engine, Handle& handle) {
    if (!handle.writable) return;
    WriteLog::Report report;
    ExtentList sound;
    if (handle.size > 1) PMPI_Barrier(handle.comm);  // no rank reads back before all have written
    {
        const std::lock_guard guard(handle.file->log_lock);
        const StorageScope scope(engine);
        if (handle.descriptor.readable) {
            report = handle.file->log.check(handle.id, *handle.storage, handle.descriptor.number);
        }
        sound = handle.file->log.written_except(report.wrong);
    }
    if (!report.wrong.empty()) say_container_problem(engine, handle);
    const Sums sums = add_up(handle, {report.checked_bytes, report.unchecked_bytes, std::ssize(report.wrong),
                                      handle.file->passed_writes.load()});
    ExtentList unexplained;
    std::int64_t rank = 0;
    if (sums.wrong_extents > 0) {
        const std::vector<RankExtent> wrong = gather_wrong(handle, report.wrong);
        const std::vector<std::int32_t> explained = explain(handle, wrong, sound);
        for (std::size_t i = 0; i < wrong.size(); ++i) {
            if (explained[i] != 0) continue;
            if (unexplained.empty() || wrong[i].extent.offset < unexplained.front().offset) rank = wrong[i].rank;
            unexplained.push_back(wrong[i].extent);
            std::swap(unexplained.front(), *std::min_element(unexplained.begin(), unexplained.end(),
                                                             [](Extent a, Extent b) { return a.offset < b.offset; }));
        }
        layout::normalize(unexplained);
    }
    if (handle.rank != 0) return;
    if (!unexplained.empty()) return say_wrong(engine, handle, unexplained, rank, sums);
    std::string text = "the file holds what the program wrote";
    if (!handle.descriptor.readable) text = "nothing checked: the file may not be read";
    if (sums.unchecked_bytes > 0)
        text += "; " + std::to_string(sums.unchecked_bytes) + " bytes were partly overwritten later and not checked";
    if (sums.passed_writes > 0)
        text += "; writes of the MPI library are not checked: " + std::to_string(sums.passed_writes);
    note(engine, format::NoteCode::verify_ok, handle.path, sums.checked_bytes, text);
}

}  // namespace ioweir::engine
