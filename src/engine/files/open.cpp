// MPI_File_open and MPI_File_close: is a file the engine's? Agreed by all ranks once, at open.
// What does not live here: views (view.cpp), moving data (direct.cpp).
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/checksum.hpp"
#include "engine/files/hints.hpp"
#include "engine/files/mapped.hpp"
#include "engine/parts.hpp"
#include "layout/mpi/flatten.hpp"
#include "planner/plan.hpp"
#include "planner/strategy.hpp"
#include "storage/coherent.hpp"

namespace ioweir::engine {
namespace {

/// ROMIO's file system prefixes (MPI 4.0, section 14.2.1 leaves names to the implementation). Those that only choose a driver
/// for a file reachable by POSIX are stripped.
constexpr std::string_view posix_prefixes[] = {"ufs:", "lustre:", "gpfs:", "xfs:", "panfs:", "UFS:"};

std::string_view without_prefix(std::string_view filename) {
    for (const std::string_view prefix : posix_prefixes) {
        if (filename.starts_with(prefix)) return filename.substr(prefix.size());
    }
    return filename;
}

/// What this rank thinks before the file is open.
struct Candidate {
    const policy::FileRule* rule = nullptr;
    std::string path;
    std::string refusal;
    Chosen chosen;
    std::shared_ptr<ChosenSeries> series;  ///< its writers are chosen by what was measured of this one
    const char* left_because = "the MPI library's turn";
    bool by_library =
        false;  ///< it is the MPI library's turn, or its rule leaves it to it: opened as if there was no plan
    bool is_shared = false;  ///< the engine writes to it through another handle: the library must not sieve
};

std::string refuse_strategy(const planner::Strategy& strategy) {
    if (left_to_library(strategy)) return {};
    if (const auto error = planner::why_not_executable(strategy)) return error->message();
    return {};
}

/// The rule's strategy with the program's hints; hints that ask for what is not executed are not used.
Chosen choose_executable(const policy::FileRule& rule, MPI_Info info) {
    Chosen chosen = choose(rule, [&](const char* hint) { return info_value(info, hint); });
    const std::string refusal = refuse_strategy(chosen.strategy);
    if (refusal.empty() || !refuse_strategy(rule.strategy).empty()) return chosen;
    chosen.unused.push_back("the program's hints: " + refusal);
    chosen.strategy = rule.strategy;
    chosen.effects = {};
    return chosen;
}

Candidate judge(const Engine& engine, const char* filename, int amode, MPI_Info info) {
    Candidate candidate;
    candidate.path = without_prefix(filename);
    candidate.rule = engine.plan.match(candidate.path);
    if (candidate.rule == nullptr) return candidate;
    candidate.chosen = choose_executable(*candidate.rule, info);
    candidate.refusal = refuse_strategy(candidate.chosen.strategy);
    struct stat there{};
    if ((amode & MPI_MODE_SEQUENTIAL) != 0) candidate.refusal = "MPI_MODE_SEQUENTIAL";
    if (candidate.path != filename && ::stat(filename, &there) == 0) {
        candidate.refusal = "a file exists whose name is the prefix and the path";
    }
    return candidate;
}

/// Where the rule, or a hint, leaves the file to the library. The engine may write to it through another handle.
bool leave_to_library(const Engine& engine, Candidate& candidate) {
    if (candidate.rule == nullptr || !left_to_library(candidate.chosen.strategy)) return false;
    candidate.by_library = true;
    candidate.left_because = "left to the MPI library by its rule";
    if (const std::shared_ptr<Handle> other = engine.find_named(candidate.path)) candidate.is_shared = other->engaged;
    return true;
}

/// Why the library moves the file that is opened next.
const char* because_of(const ChosenSeries& series) {
    return series.series.next().step == Series::Step::ended ? "left to the MPI library for good"
                                                            : "the MPI library's turn";
}

/// Where the rule leaves the writers to what is measured. Only of files that all ranks of the program open together: others might write to a file
/// by other writers at the same time, and libraries write back what lies between the pieces of a call, under locks that the engine does not take.
void choose_writers(Engine& engine, MPI_Comm comm, int amode, Candidate& candidate) {
    if (candidate.rule == nullptr || candidate.rule->choosing == policy::Choosing::no) return;
    if (!candidate.refusal.empty()) return;
    candidate.by_library = true;
    int rank = 0, ranks = 1, world_ranks = 0, has_world = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &ranks);
    PMPI_Initialized(&has_world);
    if (has_world != 0) PMPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
    candidate.left_because = "not opened by all ranks of the program together";
    if (ranks != world_ranks) return;
    candidate.left_because = "the file is open already";
    if (const std::shared_ptr<Handle> other = engine.find_named(candidate.path)) {
        candidate.is_shared = other->engaged;
        return;
    }
    candidate.left_because =
        "no choice of writers in a program with several threads in MPI, or with too many series of files";
    candidate.series = find_series(engine, *candidate.rule, candidate.path, amode, rank, ranks);
    if (!candidate.series) return;
    const Series::Turn turn = candidate.series->series.next();
    candidate.by_library = turn.alternative == Series::library && turn.step != Series::Step::compared;
    candidate.left_because = because_of(*candidate.series);
    if (!candidate.by_library) put_writers(*candidate.series, candidate.chosen.strategy);
}

/// The engine's descriptor, or why there is none.
std::string open_descriptor(Engine& engine, Handle& handle) {
    const StorageScope scope(engine);
    struct stat info{};
    // Not opened once more: that alone makes some devices act.
    if (::stat(handle.path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return "not a regular file";
    // Reading back needs a readable descriptor; a program may have opened the file for writing only because it must not read it.
    const bool wants_read = handle.readable || engine.verify;
    Descriptors::Opened opened = engine.descriptors.open(handle.path, wants_read, handle.writable);
    if (opened.error == EACCES && wants_read && !handle.readable) {
        opened = engine.descriptors.open(handle.path, false, handle.writable);
    }
    if (opened.error != 0)
        return std::string("the file cannot be opened a second time: ") + std::strerror(opened.error);
    handle.descriptor = opened.descriptor;
    if (::fstat(opened.descriptor.number, &info) != 0 || !S_ISREG(info.st_mode)) return "not a regular file";
    return storage::why_not_coherent(opened.descriptor.number);
}

/// What a rank says of its own open.
struct OpenSaid {
    bool wants = false;
    std::int64_t rule = -1;  ///< see Engine::rule_digests
    int access_mode = 0;
    bool opened = false;  ///< by the MPI library
    bool stale = false;   ///< what it has opened is not what rank 0 has found
    bool is_header_file = false;
    bool may_repeat = false;  ///< all of it, if it has to
    bool takes_turns = false;
    bool verifies = false;
};

/// By what of the access mode ranks would go different ways. Open MPI's ranks may have different ones, against the standard. Who makes the file
/// is not in it: a program may have one rank do so.
std::int64_t ways_of(int access_mode) {
    return access_mode & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND |
                          MPI_MODE_DELETE_ON_CLOSE);
}

struct Agreement {
    bool engaged = false;
    bool same_modes = true;
    bool same_rule = false;
    bool same_hints = false;
    /// Somebody has put another file there meanwhile: all have opened it, and not all the same.
    bool again = false;
    bool may_repeat = false;  ///< all ranks
    bool takes_turns = false;
    bool one_thread = false;
    bool verifies = false;
    bool opened = false;  ///< by the MPI library, on all ranks
    SeriesWords series;
};

/// Do all ranks want the engine, by the same rule, for the same file, and in the same way? Every rank that has a plan gets here on
/// every open, whatever it thinks, so that none waits for another.
Agreement agree(MPI_Comm comm, const Handle& handle, const OpenSaid& said, const SeriesWords& series) {
    const auto inode = static_cast<std::int64_t>(handle.descriptor.identity.inode);
    const std::string text = planner::to_text(handle.strategy) + (handle.effects.reads_together ? "" : ", reads alone");
    const auto way = static_cast<std::int64_t>(checksum(text.data(), text.size()));
    const std::int64_t modes = ways_of(said.access_mode);
    constexpr std::size_t own = 15;
    std::array<std::int64_t, own + SeriesWords::count> mine{said.wants ? 1 : 0,
                                                            inode,
                                                            ~inode,
                                                            said.rule,
                                                            ~said.rule,
                                                            way,
                                                            ~way,
                                                            said.opened ? 1 : 0,
                                                            said.stale ? 0 : 1,
                                                            said.takes_turns ? 1 : 0,
                                                            ProcessGroups::has_one_thread() ? 1 : 0,
                                                            said.verifies ? 1 : 0,
                                                            modes,
                                                            ~modes,
                                                            said.may_repeat ? 1 : 0};  // min(~x) == ~max(x)
    std::copy(series.words.begin(), series.words.end(), mine.begin() + own);
    std::array<std::int64_t, own + SeriesWords::count> least{};
    if (PMPI_Allreduce(mine.data(), least.data(), static_cast<int>(mine.size()), MPI_INT64_T, MPI_MIN, comm) !=
        MPI_SUCCESS) {
        return {};
    }
    const bool same_file = least[1] == ~least[2];
    Agreement agreed;
    agreed.same_rule = least[3] == ~least[4];
    agreed.same_hints = least[5] == ~least[6];
    agreed.same_modes = least[12] == ~least[13];
    agreed.opened = least[7] == 1;
    agreed.again = agreed.opened && (least[8] == 0 || (said.is_header_file && !same_file));
    agreed.may_repeat = least[14] == 1;
    agreed.takes_turns = least[9] == 1;
    agreed.one_thread = least[10] == 1;
    agreed.verifies = least[11] == 1;
    agreed.engaged =
        least[0] == 1 && same_file && agreed.same_modes && (agreed.same_rule || said.is_header_file) && !agreed.again;
    std::copy(least.begin() + own, least.end(), agreed.series.words.begin());
    return agreed;
}

/// Those who exchange bytes with each other: all ranks of the file, or where groups have a file each those of one group.
std::string make_team(Engine& engine, Handle& handle, MPI_Comm comm) {
    std::string why;
    if (handle.container && handle.strategy.mapping.kind == planner::MappingKind::grouped) {
        const int groups = static_cast<int>(handle.strategy.mapping.count);
        MPI_Comm group = MPI_COMM_NULL;
        PMPI_Comm_split(comm, planner::group_of_rank(handle.rank, groups, handle.size), handle.rank, &group);
        handle.exchanging = engine.process_groups.take(group, handle.one_thread);
        PMPI_Comm_free(&group);
    } else {
        handle.exchanging = engine.process_groups.take(comm, handle.one_thread);
    }
    handle.team = ProcessGroups::team_of(*handle.exchanging, why);
    if (!handle.team) engine.process_groups.give_back(handle.exchanging);
    return why;
}

/// All ranks have agreed that they want it. An MPI error class on every rank when the file cannot be opened after all.
int engage(Engine& engine, Handle& handle, MPI_Comm comm, int amode, const Found& found, const policy::FileRule* rule) {
    handle.storage = &engine.backend;
    handle.visible_at_sync = rule != nullptr && rule->visibility == policy::Visibility::sync;
    if (found.kind == Found::Kind::header_file || handle.strategy.mapping.kind != planner::MappingKind::shared) {
        const int failure = attach_container(engine, handle, comm, amode, found, rule);
        if (failure != MPI_SUCCESS) return failure;
    }
    if (handle.size > 1) {
        if (may_aggregate(handle.strategy)) {
            const std::string why = make_team(engine, handle, comm);
            if (!handle.team && !handle.container) {
                handle.refusal = why;
                return MPI_SUCCESS;
            }
            // A container is nothing that the MPI library could move: each rank moves its own bytes then.
            if (!handle.team) handle.passed.count("no exchange, each rank alone: " + why);
        }
        handle.ranks = engine.process_groups.take(comm, handle.one_thread);
        handle.comm = handle.ranks->comm;
        begin_shared_reads(engine, handle);
    }
    handle.engaged = true;
    handle.file = engine.file(handle.descriptor.identity);
    handle.view = {0, 1, layout::flatten(MPI_BYTE).value()};
    const planner::Stripe& stripe = handle.strategy.stripe;
    const bool asks = may_aggregate(handle.strategy) || stripe.size_bytes > 0 || stripe.count > 0;
    if (asks && handle.strategy.mapping.kind != planner::MappingKind::subfiles)  // whose stripes are its own
        adopt_striping(engine, handle);
    if (handle.strategy.writers.kind == planner::WritersKind::behind)
        begin_behind(engine, handle, comm, handle.visible_at_sync);
    if (handle.rank == 0) {
        const std::string by =
            rule != nullptr ? "rule \"" + rule->match + "\": " : "no rule, but a container is there: ";
        note(engine, format::NoteCode::plan_applied, handle.path, rule != nullptr ? rule->line : 0,
             by + planner::to_text(handle.strategy));
    }
    return MPI_SUCCESS;
}

/// A file that the program cannot have: everything that was opened is closed again.
int give_up(Engine& engine, Handle& handle, MPI_File* fh, int error_class) {
    stop_choosing(handle, "its files cannot be opened");
    {
        const StorageScope scope(engine);
        engine.descriptors.release(std::exchange(handle.descriptor, {}));
    }
    // A new handle has the error handler of MPI_FILE_NULL, to which errors of MPI_File_open belong (MPI 4.0, section 14.7); Open MPI
    // cannot be asked to call that one.
    raise(*fh, error_class);
    engine.below.File_close(fh);
    *fh = MPI_FILE_NULL;
    return error_class;
}

/// The same, to try once more.
int leave_open(Engine& engine, Handle& handle, MPI_File* fh) {
    stop_choosing(handle, "its files change while they are opened");
    {
        const StorageScope scope(engine);
        engine.descriptors.release(std::exchange(handle.descriptor, {}));
    }
    engine.below.File_close(fh);
    return open_again;
}

/// Is there one at the path now? Nobody is told of a damaged one yet.
bool finds_header_file(Engine& engine, const std::string& path) {
    const StorageScope scope(engine);
    const auto header_file = read_header_file(engine, path);
    return header_file.ok() && header_file.value().has_value();
}

/// Collective over `comm`. open_again, on every rank: nothing is open, and all have to try once more; only where `may_repeat`.
int try_open(Engine& engine, MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh,
             bool may_repeat) {
    Candidate candidate = judge(engine, filename, amode, info);
    if (!leave_to_library(engine, candidate)) choose_writers(engine, comm, amode, candidate);
    const bool wanted = candidate.rule != nullptr && candidate.refusal.empty() && !candidate.by_library;
    for (const std::shared_ptr<FileState>& file : engine.files()) settle_length(engine, *file);
    drain_path(engine, AT_FDCWD, candidate.path.c_str());
    const auto real_open = [&] {
        const planner::Strategy& strategy = candidate.chosen.strategy;
        const bool is_the_librarys = !wanted && !candidate.is_shared;
        if (is_the_librarys && (!left_to_library(strategy) || strategy.stripe == planner::Stripe{}))
            return engine.below.File_open(comm, filename, amode, info, fh);
        using Sieving = LibraryInfo::Sieving;
        const LibraryInfo told(info, strategy.stripe, is_the_librarys ? Sieving::as_given : Sieving::off);
        return engine.below.File_open(comm, filename, amode, told.get(), fh);
    };
    const bool was_header_file = finds_header_file(engine, candidate.path);
    const int result = real_open();
    int error_class = MPI_SUCCESS;
    if (result != MPI_SUCCESS) PMPI_Error_class(result, &error_class);
    if (error_class == MPI_ERR_COMM) return result;  // nothing to agree over

    const Found found = look(engine, comm, candidate.path, result == MPI_SUCCESS);
    const bool is_header_file = found.kind == Found::Kind::header_file;
    auto handle = std::make_shared<Handle>();
    handle->id = engine.next_id();
    handle->path = candidate.path;
    handle->readable = (amode & (MPI_MODE_RDONLY | MPI_MODE_RDWR)) != 0;
    handle->writable = (amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0;
    handle->refusal = candidate.by_library ? candidate.left_because : candidate.refusal;
    handle->strategy = candidate.chosen.strategy;
    handle->effects = candidate.chosen.effects;
    // Bytes that wait are written to one file.
    if (is_header_file && handle->strategy.writers.kind == planner::WritersKind::behind) handle->strategy.writers = {};
    handle->sequential = (amode & MPI_MODE_SEQUENTIAL) != 0;
    if (is_header_file && !wanted) {  // a container needs no rule to be read
        handle->refusal.clear();
        handle->strategy = {};
        handle->effects = {};
    }
    PMPI_Comm_rank(comm, &handle->rank);
    PMPI_Comm_size(comm, &handle->size);
    if (found.kind == Found::Kind::damaged) handle->refusal = "its header file is damaged";
    const bool tries = (wanted || is_header_file) && result == MPI_SUCCESS && handle->refusal.empty();
    if (tries) handle->refusal = open_descriptor(engine, *handle);

    const bool wants = tries && handle->refusal.empty();
    const std::int64_t rule_line = candidate.rule == nullptr ? -1 : candidate.rule - engine.plan.files.data();
    const bool stale = was_header_file && found.kind == Found::Kind::ordinary;
    const std::int64_t rule = rule_line < 0 ? -1 : engine.rule_digests[static_cast<std::size_t>(rule_line)];
    const OpenSaid said{.wants = wants,
                        .rule = rule,
                        .access_mode = amode,
                        .opened = result == MPI_SUCCESS,
                        .stale = stale,
                        .is_header_file = is_header_file,
                        .may_repeat = may_repeat,
                        .takes_turns = may_take_turns(engine),
                        .verifies = engine.verify};
    const Agreement agreement = agree(comm, *handle, said, words_of(engine, candidate.series.get()));
    if (agreement.again && agreement.may_repeat) return leave_open(engine, *handle, fh);
    if (agreement.opened)
        handle->choosing = begin_choosing(engine, candidate.series, agreement.series, agreement.engaged);
    // What became of the file before can end the series in this very open: the engine's writers were put only to try them.
    bool engaged = agreement.engaged;
    if (engaged && candidate.series && !handle->choosing && found.kind == Found::Kind::ordinary) {
        engaged = put_unmeasured(*candidate.series, candidate.chosen.strategy);
        if (engaged)
            handle->strategy = candidate.chosen.strategy;
        else
            handle->refusal = because_of(*candidate.series);
        candidate.by_library = !engaged;
    }
    handle->one_thread = agreement.one_thread;
    handle->all_verify = agreement.verifies;
    if (engaged) {
        std::vector<std::string> unused = candidate.chosen.unused;
        if (!agreement.same_rule) {  // a container needs none
            candidate.rule = nullptr;
            handle->strategy = {};
            handle->effects = {};
        }
        if (!agreement.same_hints && candidate.rule != nullptr) {
            handle->strategy = candidate.rule->strategy;
            handle->effects = {};
            if (is_one_series(agreement.series)) {
                handle->strategy.writers = candidate.chosen.strategy.writers;
                handle->strategy.domains = candidate.chosen.strategy.domains;
                handle->strategy.order = candidate.chosen.strategy.order;
            }
            unused.push_back("the program's hints: they differ between ranks");
        }
        if (handle->rank == 0) {
            for (const std::string& why : unused)
                note(engine, format::NoteCode::message, handle->path, 0, "not used: " + why);
        }
        handle->defers_set_size = candidate.rule != nullptr && candidate.rule->defers_set_size;
        const int failure = engage(engine, *handle, comm, amode, found, candidate.rule);
        if (failure == open_again && agreement.may_repeat) return leave_open(engine, *handle, fh);
        if (failure != MPI_SUCCESS) return give_up(engine, *handle, fh, failure == open_again ? MPI_ERR_IO : failure);
        if (handle->container) stop_choosing(*handle, "its bytes lie in several files");
        // With MPI_MODE_APPEND the library's pointer stands at the end of the header file.
        if (handle->container && !handle->sequential && (amode & MPI_MODE_APPEND) != 0)
            PMPI_File_seek(*fh, handle->begin, MPI_SEEK_SET);
        if (handle->engaged && !handle->sequential) take_pointer(*handle, *fh);
        judge_lean(engine, *handle);
        if (handle->engaged && candidate.rule != nullptr && agreement.takes_turns &&
            candidate.rule->choosing == policy::Choosing::no)
            begin_turns(engine, *handle, rule_line);
    } else if (handle->refusal.empty()) {
        handle->refusal =
            agreement.same_modes ? "not possible on another rank" : "its ranks have given different access modes";
    }
    if (found.kind != Found::Kind::ordinary && !handle->engaged && result == MPI_SUCCESS) {
        note(engine, format::NoteCode::message, handle->path, 0,
             "a container that cannot be opened: " + handle->refusal);
        return give_up(engine, *handle, fh, is_header_file ? MPI_ERR_UNSUPPORTED_OPERATION : MPI_ERR_IO);
    }
    if (!handle->engaged) {
        const StorageScope scope(engine);
        engine.descriptors.release(std::exchange(handle->descriptor, {}));
    }
    if (!handle->choosing && candidate.by_library && !handle->engaged && !engine.verify && !candidate.is_shared) {
        // Nothing of the engine happens in its calls.
        if (handle->rank == 0 && result == MPI_SUCCESS)
            note(engine, format::NoteCode::passed_through, handle->path, 0, handle->refusal);
        return result;
    }
    // A rule that matched is said, whatever became of the file.
    if (candidate.rule != nullptr && !handle->engaged) {
        if (result == MPI_SUCCESS)
            handle->passed.mention(handle->refusal);
        else if (handle->rank == 0)
            note(engine, format::NoteCode::passed_through, handle->path, 0, "MPI_File_open failed");
    }
    if (result == MPI_SUCCESS && (candidate.rule != nullptr || is_header_file)) engine.add(*fh, std::move(handle));
    return result;
}

}  // namespace

int open_file(Engine& engine, MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
    if (comm == MPI_COMM_NULL || filename == nullptr) return engine.below.File_open(comm, filename, amode, info, fh);
    // Each time somebody else has made an ordinary file of a container, or the reverse. A file that is to be a new one is no such.
    constexpr int most_tries = 10;
    const bool repeats = (amode & (MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE)) == 0;
    for (int tries = 1;; ++tries) {
        const int result = try_open(engine, comm, filename, amode, info, fh, repeats && tries < most_tries);
        if (result != open_again) return result;
    }
}

int close_file(Engine& engine, MPI_File* fh) {
    const std::shared_ptr<Handle> handle = fh != nullptr ? engine.find(*fh) : nullptr;
    if (!handle) return engine.below.File_close(fh);
    engine.remove(*fh);  // before the real close: another thread may be given the same handle right after
    int others = MPI_SUCCESS;
    std::optional<TimedCall> timed(std::in_place, handle->choosing.get());
    if (handle->engaged) {
        if (handle->split.kind != SplitCollective::Kind::none) owe_error(*handle, handle->split.result);  // never ended
        leave_container(engine, *handle);
        others = raise(*fh, agree_on_errors(engine, *handle));
        forget_size(*handle);  // where the file could not be made so long, nobody does it later
        const int ended = raise(*fh, end_container(engine, *handle));
        if (others == MPI_SUCCESS) others = ended;
    }
    int result = engine.below.File_close(fh);
    if (result == MPI_SUCCESS) result = others;
    timed.reset();
    end_choosing(engine, *handle);
    if (engine.verify)
        handle->engaged && handle->all_verify ? verify_written(engine, *handle) : say_unverified(engine, *handle, true);
    end_behind(engine, *handle);
    close_container(engine, *handle);
    note_end(engine, *handle);
    {
        const StorageScope scope(engine);
        engine.descriptors.release(handle->descriptor);
    }
    for (const Subgroup& subgroup : handle->subgroup) {
        if (subgroup.part) subgroup.part->exchange->release();  // the next file may divide its ranks in another way
    }
    handle->team = nullptr;
    engine.process_groups.give_back(handle->exchanging);
    engine.process_groups.give_back(handle->ranks);
    return result;
}

int delete_file(Engine& engine, const char* filename, MPI_Info info) {
    if (filename == nullptr) return engine.below.File_delete(filename, info);
    const std::string path(without_prefix(filename));
    Deletion deletion = begin_deletion(engine, path);
    const int result = engine.below.File_delete(filename, info);
    end_deletion(engine, path, std::move(deletion), result == MPI_SUCCESS);
    return result;
}

}  // namespace ioweir::engine
