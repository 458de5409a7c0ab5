// --verify: does the file hold what the program was told that it has written? After the real close every rank reads back what it wrote
// through the handle. A mismatch is no error if a later write of another rank explains it: that rank's bytes overlap and check out, or are
// themselves explained so. Every byte that was passed to a write call and is not compared is said, with the reason: calls that failed,
// calls that the MPI library carried out, bytes whose checksum another write has made worthless.
// What does not live here: the log itself (write_log.hpp). What the program wrote by other means than MPI-IO is not known here.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/standard_error.hpp"
#include "engine/files/mapped.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

using format::VerifyOutcome;
using layout::Extent;
using layout::ExtentList;

// ------------------------------------------------------------------------------------------------ lists of all ranks

struct RankExtent {
    Extent extent;
    std::int64_t rank;
};

/// Every rank's list, on every rank, in order of ranks.
std::vector<RankExtent> gather(const Handle& handle, const ExtentList& list) {
    std::vector<RankExtent> all;
    if (handle.size == 1) {
        for (const Extent& extent : list) all.push_back({extent, 0});
        return all;
    }
    int mine = static_cast<int>(2 * list.size());
    std::vector<int> counts(static_cast<std::size_t>(handle.size)), starts(static_cast<std::size_t>(handle.size));
    PMPI_Allgather(&mine, 1, MPI_INT, counts.data(), 1, MPI_INT, handle.comm);
    int total = 0;
    for (std::size_t r = 0; r < counts.size(); ++r) {
        starts[r] = total;
        total += counts[r];
    }
    std::vector<std::int64_t> flat, gathered(static_cast<std::size_t>(total));
    for (const Extent& extent : list) flat.insert(flat.end(), {extent.offset, extent.length});
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
                                  const ExtentList& touched) {
    std::vector<std::int32_t> explained(wrong.size(), 0);
    for (std::size_t i = 0; i < wrong.size(); ++i)
        explained[i] = wrong[i].rank != handle.rank && !layout::touching(touched, wrong[i].extent).empty() ? 1 : 0;
    if (handle.size > 1) {
        PMPI_Allreduce(MPI_IN_PLACE, explained.data(), static_cast<int>(explained.size()), MPI_INT32_T, MPI_MAX,
                       handle.comm);
    }
    // A overwritten by B overwritten by C: what explains B's mismatch shows that B did write there, after A. Repeated until
    // nothing changes. Extents of one rank are disjoint, so that what overlaps is of different ranks, and chains are short.
    for (bool changed = true; changed;) {
        changed = false;
        ExtentList known;
        for (std::size_t i = 0; i < wrong.size(); ++i)
            if (explained[i] != 0) known.push_back(wrong[i].extent);
        layout::normalize(known);
        for (std::size_t i = 0; i < wrong.size(); ++i) {
            if (explained[i] != 0 || layout::touching(known, wrong[i].extent).empty()) continue;
            explained[i] = 1;
            changed = true;
        }
    }
    return explained;
}

/// What is wrong and lies where others have written: the part of it that is not as they wrote it either.
ExtentList not_compared(const Handle& handle, const std::vector<RankExtent>& wrong,
                        const std::vector<std::int32_t>& explained, const ExtentList& known) {
    ExtentList of_others, mine, over_others;
    for (std::size_t i = 0; i < wrong.size(); ++i) {
        if (explained[i] == 0) continue;
        (wrong[i].rank == handle.rank ? mine : of_others).push_back(wrong[i].extent);
    }
    layout::normalize(of_others);
    layout::normalize(mine);
    for (const RankExtent& one : gather(handle, layout::intersect(known, of_others)))
        if (one.rank != handle.rank) over_others.push_back(one.extent);
    layout::normalize(over_others);
    return layout::subtract(mine, over_others);
}

// ------------------------------------------------------------------------------------------------------- saying it

void say(const Engine& engine, const Handle& handle, VerifyOutcome outcome, std::int64_t calls, std::int64_t bytes,
         std::int64_t offset, const std::string& text) {
    if (bytes > 0 && engine.host.verified != nullptr)
        engine.host.verified({outcome, calls, bytes, offset, handle.path.c_str(), text.c_str()});
}

/// Bytes of a normal list.
std::int64_t say(const Engine& engine, const Handle& handle, VerifyOutcome outcome, const ExtentList& extents,
                 const std::string& text, std::int64_t calls = 0) {
    if (extents.empty()) return 0;
    const std::int64_t bytes = layout::total_bytes(extents).value_or(INT64_MAX);
    say(engine, handle, outcome, calls, bytes, extents.front().offset, text);
    return bytes;
}

/// Bytes that this rank passed to calls which the log does not know.
std::int64_t say_left_out(const Engine& engine, Handle& handle) {
    std::int64_t bytes = 0;
    for (const LeftOut::Entry& entry : handle.left_out.take()) {
        say(engine, handle, entry.outcome, entry.calls, entry.bytes, entry.offset, entry.reason);
        bytes += entry.bytes;
    }
    return bytes;
}

/// What of the log is not compared, whatever reading tells.
std::int64_t say_lost(const Engine& engine, const Handle& handle, const WriteLog::Report& report) {
    say(engine, handle, VerifyOutcome::beyond_memory, 0, report.beyond_bytes, -1,
        "more pieces than verification keeps in memory");
    return report.beyond_bytes +
           say(engine, handle, VerifyOutcome::failed, report.failed, "the call failed", handle.failed_writes);
}

struct Sums {
    std::int64_t equal_bytes, left_out_bytes, wrong_extents, passed_writes;
};

Sums add_up(const Handle& handle, Sums mine) {
    if (handle.size == 1) return mine;
    std::array<std::int64_t, 4> out{},
        in{mine.equal_bytes, mine.left_out_bytes, mine.wrong_extents, mine.passed_writes};
    PMPI_Allreduce(in.data(), out.data(), static_cast<int>(in.size()), MPI_INT64_T, MPI_SUM, handle.comm);
    return {out[0], out[1], out[2], out[3]};
}

void say_wrong(const Engine& engine, const Handle& handle, const std::vector<RankExtent>& places) {
    std::int64_t bytes = 0;
    for (const RankExtent& place : places) bytes += place.extent.length;
    const RankExtent& first =
        *std::min_element(places.begin(), places.end(),
                          [](const RankExtent& a, const RankExtent& b) { return a.extent.offset < b.extent.offset; });
    const std::string where = std::to_string(places.size()) + " place(s) of together " + std::to_string(bytes) +
                              " bytes, the first at offset " + std::to_string(first.extent.offset) + " (" +
                              std::to_string(first.extent.length) + " bytes, written by rank " +
                              std::to_string(first.rank) + ")";
    note(engine, format::NoteCode::verify_mismatch, handle.path, bytes, where);
    say_line("ioweir: verify: " + handle.path + " does not hold what the program wrote: " + where +
             "; do not use this file, and switch the plan off for it\n");
}

// ---------------------------------------------------------------------------------------------------- what differs

/// Of all ranks' bytes that differ, without those that other writes explain.
struct Differences {
    std::vector<RankExtent> certain;  ///< of all ranks
    ExtentList overlapped;            ///< this rank's: nobody can tell
    ExtentList not_written;           ///< this rank's: bytes that were handed over, of which the program was told later
};

/// Collective over the handle's group, where any rank has found a difference.
Differences judge(const Handle& handle, const WriteLog::Report& report, const ExtentList& touched,
                  const ExtentList& known, bool others_wrote) {
    const std::vector<RankExtent> wrong = gather(handle, report.wrong);
    const std::vector<std::int32_t> explained = explain(handle, wrong, touched);
    std::vector<char> told(static_cast<std::size_t>(handle.size), handle.failed_behind ? 1 : 0);
    if (handle.size > 1) {
        const char mine = told[0];
        PMPI_Allgather(&mine, 1, MPI_CHAR, told.data(), 1, MPI_CHAR, handle.comm);
    }
    Differences result;
    result.overlapped = not_compared(handle, wrong, explained, known);
    for (std::size_t i = 0; i < wrong.size(); ++i) {
        if (explained[i] != 0) continue;
        const bool mine = wrong[i].rank == handle.rank;
        if (told[static_cast<std::size_t>(wrong[i].rank)] != 0) {
            if (mine) result.not_written.push_back(wrong[i].extent);
        } else if (others_wrote) {
            if (mine) result.overlapped.push_back(wrong[i].extent);
        } else {
            result.certain.push_back(wrong[i]);
        }
    }
    layout::normalize(result.overlapped);
    layout::normalize(result.not_written);
    return result;
}

std::int64_t read_for_log(Engine& engine, Handle& handle, std::byte* to, std::int64_t bytes, std::int64_t offset) {
    drain_behind(*handle.file);
    const StorageScope scope(engine);
    return handle.storage->read_at(handle.descriptor.number, to, bytes, offset).bytes;
}

/// Where a call's first byte goes; -1 where only the MPI library knows.
std::int64_t place_of(Handle& handle, const Call& call) {
    if (call.shared || handle.sequential || !handle.view_refusal.empty()) return -1;
    MPI_Offset etypes = call.offset;
    if (!call.explicit_offset && position_of(handle, call.fh, etypes) != MPI_SUCCESS) return -1;
    if (!handle.engaged) return handle.view_is_set ? -1 : etypes;
    std::int64_t byte = 0;
    layout::Extent piece;
    if (etypes < 0 || __builtin_mul_overflow(etypes, handle.view.etype_bytes, &byte) || byte >= handle.view_bytes)
        return -1;
    if (!handle.view.has_places(byte, 1)) return -1;
    return handle.view.pieces(byte, 1).next(piece) ? piece.offset : -1;
}

}  // namespace

void prepare_log(Engine& engine, Handle& handle, const FileRange& range, std::int64_t bytes) {
    const std::lock_guard guard(handle.file->log_lock);
    handle.file->log.prepare(range, bytes, [&](std::byte* to, std::int64_t most, std::int64_t offset) {
        return read_for_log(engine, handle, to, most, offset);
    });
}

void prepare_log_for_cut(Engine& engine, Handle& handle, std::int64_t length) {
    if (length < 0) return;
    const std::lock_guard guard(handle.file->log_lock);
    handle.file->log.prepare({length, INT64_MAX - length}, [&](std::byte* to, std::int64_t most, std::int64_t offset) {
        return read_for_log(engine, handle, to, most, offset);
    });
}

int pass_write(Handle& handle, const Call& call, std::string_view reason, FunctionRef<int()> real) {
    const std::int64_t bytes = bytes_asked(call);
    const std::int64_t offset = bytes > 0 ? place_of(handle, call) : -1;
    const int result = real();
    if (result == MPI_SUCCESS) {
        handle.left_out.add(VerifyOutcome::passed_through, reason, bytes, offset);
    } else {
        handle.left_out.add(VerifyOutcome::failed, "by the MPI library: " + std::string(reason), bytes, offset);
    }
    return result;
}

void count_failed(Handle& handle, const Call& call, std::string_view reason) {
    handle.left_out.add(VerifyOutcome::failed, reason, bytes_asked(call), -1);
}

void verify_written(Engine& engine, Handle& handle) {
    if (!handle.writable) {
        say_left_out(engine, handle);
        return;
    }
    WriteLog::Report report;
    ExtentList touched, known;
    if (handle.size > 1) PMPI_Barrier(handle.comm);  // no rank reads back before all have written
    const bool reads = handle.descriptor.readable;
    {
        const std::lock_guard guard(handle.file->log_lock);
        const StorageScope scope(engine);
        WriteLog& log = handle.file->log;
        report = reads ? log.check(handle.id, *handle.storage, handle.descriptor.number) : log.left_by(handle.id);
        touched = layout::unite(log.written_except(report.wrong), log.hazy());
        known = log.known_except(report.wrong);
    }
    if (!report.wrong.empty()) say_container_problem(engine, handle);
    std::int64_t left_out = say_left_out(engine, handle) + say_lost(engine, handle, report);
    left_out += reads ? say(engine, handle, VerifyOutcome::overlapped, report.unsure,
                            "partly written over by other calls, in between or in the wrong place")
                      : say(engine, handle, VerifyOutcome::unreadable, report.unsure, "the file may not be read");
    const std::int64_t equal = report.checked_bytes - layout::total_bytes(report.wrong).value_or(0);
    say(engine, handle, VerifyOutcome::equal, 0, equal, -1, "");
    const Sums sums = add_up(handle, {equal, left_out, std::ssize(report.wrong), handle.file->passed_writes.load()});
    if (sums.wrong_extents > 0) {
        const Differences found = judge(handle, report, touched, known, sums.passed_writes > 0);
        say(engine, handle, VerifyOutcome::overlapped, found.overlapped,
            sums.passed_writes > 0 ? "changed, and the MPI library wrote to the file too"
                                   : "written by other ranks too, in part");
        say(engine, handle, VerifyOutcome::failed, found.not_written,
            "handed over to be written behind the program, and not written");
        ExtentList mine;
        for (const RankExtent& one : found.certain)
            if (one.rank == handle.rank) mine.push_back(one.extent);
        layout::normalize(mine);
        say(engine, handle, VerifyOutcome::differs, mine, "the file holds other bytes");
        if (!found.certain.empty()) {
            if (handle.rank == 0) say_wrong(engine, handle, found.certain);
            return;
        }
    }
    if (handle.rank != 0 || sums.equal_bytes == 0) return;
    note(engine, format::NoteCode::verify_ok, handle.path, sums.equal_bytes,
         sums.left_out_bytes > 0 ? "what was compared is what the program wrote; not all of it was"
                                 : "the file holds what the program wrote");
}

void say_unverified(Engine& engine, Handle& handle, bool was_closed) {
    say_left_out(engine, handle);
    if (!handle.engaged) return;
    const std::lock_guard guard(handle.file->log_lock);
    const WriteLog::Report report = handle.file->log.left_by(handle.id);
    say_lost(engine, handle, report);
    if (was_closed)
        say(engine, handle, VerifyOutcome::unreadable, report.unsure, "not all ranks of the file verify");
    else
        say(engine, handle, VerifyOutcome::unclosed, report.unsure, "the program ended without closing the file");
}

}  // namespace ioweir::engine
