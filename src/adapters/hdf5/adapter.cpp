#include "adapters/hdf5/adapter.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "adapters/call/inside.hpp"
#include "adapters/hdf5/datasets.hpp"
#include "adapters/hdf5/file.hpp"
#include "adapters/hdf5/memory_space.hpp"
#include "adapters/hdf5/move.hpp"
#include "adapters/hdf5/open_files.hpp"
#include "adapters/hdf5/transfer.hpp"
#include "adapters/hdf5/unfilled.hpp"
#include "base/size_text.hpp"

namespace ioweir::hdf5 {
namespace {

/// A dataset whose first write teaches.
struct Watched {
    std::shared_ptr<Lessons> lessons;
    Lessons::Key key;
};

struct Adapter {
    policy::PlanFile plan;
    Host host;
    bool world = false;
    OpenFiles files;
    std::mutex mutex;  // guards the tables that follow, never held in a call of a library
    std::map<std::uint32_t, std::unique_ptr<Library>> libraries;
    std::map<std::pair<std::uint32_t, Id>, Watched> watched;
    std::shared_ptr<Lessons> lessons = std::make_shared<Lessons>();  // of files that all ranks have open
};
Adapter* adapter = nullptr;
std::atomic<int> watched_datasets{0};
thread_local bool inside = false;  // the library's own calls, made for one of ours, go on as they are

Word same(const Call& call) { return call.go_on(call.arguments); }

Library* known_library(std::uint32_t number) {
    const std::lock_guard lock(adapter->mutex);
    const auto found = adapter->libraries.find(number);
    return found != adapter->libraries.end() ? found->second.get() : nullptr;
}

/// The library that a call is for; null where it lacks functions, which is then left alone.
const Library* library_of(const Call& call) {
    Library* known = known_library(call.library);
    if (known == nullptr) {
        auto fresh = std::make_unique<Library>();
        const char* missing = fill(*fresh, {call.real, adapter->host.find, adapter->host.find_object});
        if (missing != nullptr) *fresh = {};
        const std::lock_guard lock(adapter->mutex);
        // Another thread may have filled it in meanwhile.
        const auto [place, is_new] = adapter->libraries.try_emplace(call.library, std::move(fresh));
        known = place->second.get();
        if (is_new && missing != nullptr && adapter->host.note != nullptr)
            adapter->host.note(
                "", (std::string("hdf5: the plan does not apply: the HDF5 library has no ") + missing).c_str());
    }
    return known->H5open != nullptr ? known : nullptr;
}

/// The file that an object lies in, if a rule is for it and applies.
std::shared_ptr<File> file_of(const Library& library, const Call& call, Id object) {
    std::shared_ptr<File> file = adapter->files.of(library, call.library, object);
    return file != nullptr && !file->set_aside ? file : nullptr;
}

// ---------------------------------------------------------------------------------------------------------------- files

std::shared_ptr<File> new_file(const Library& library, std::uint32_t number, const policy::FileRule& rule,
                               const char* path, Id access) {
    auto file = std::make_shared<File>();
    file->library = &library;
    file->number = number;
    file->host = adapter->host;
    file->rule = &rule;
    file->path = path;
    find_communicator(*file, access);
    int same_group = MPI_UNEQUAL;
    if (file->parallel && adapter->world) PMPI_Comm_compare(file->comm, MPI_COMM_WORLD, &same_group);
    const bool all_ranks = same_group == MPI_IDENT || same_group == MPI_CONGRUENT;
    file->unfilled = std::make_shared<Unfilled>();
    file->lessons = all_ranks ? adapter->lessons : std::make_shared<Lessons>();
    return file;
}

void say_applied(const File& file, const Words& applied) {
    std::string text;
    for (const std::string& one : applied) text += (text.empty() ? "" : ", ") + one;
    if (file.writable && file.wish().never_fill) text += (text.empty() ? "" : ", ") + std::string("no fill values");
    file.note(text.empty() ? "nothing is changed at open" : "applied: " + text);
    if (file.holds)
        file.note(
            "a job that dies before the file is flushed or closed leaves it without the metadata held until then; "
            "ioweir check tells");
}

/// May calls about the file be done after they have returned? That is up to its VOL connector.
bool works_asynchronously(const Library& library, Id access) {
    std::uint64_t flags = 0;
    const Quiet quiet(library);
    return library.H5Pget_vol_cap_flags != nullptr && library.H5Pget_vol_cap_flags(access, &flags) >= 0 &&
           (flags & works_later) != 0;
}

enum class Again { no, yes, in_other_ways };

/// Is the file open already, on all ranks in the same way as now? Ranks may differ: one has it open alone.
/// Collective over the file's communicator.
Again opened_before(const File& now, const File* before) {
    int same = MPI_UNEQUAL;
    if (before != nullptr && before->parallel && now.parallel) PMPI_Comm_compare(before->comm, now.comm, &same);
    const bool in_the_same_way = before != nullptr && before->parallel == now.parallel &&
                                 (!now.parallel || same == MPI_CONGRUENT || same == MPI_IDENT);
    std::array<int, 2> ranks{before != nullptr ? 1 : 0, in_the_same_way ? 1 : 0};
    if (now.parallel) PMPI_Allreduce(MPI_IN_PLACE, ranks.data(), 2, MPI_INT, MPI_SUM, now.comm);
    if (ranks[0] == 0) return Again::no;
    return ranks[1] == (now.parallel ? now.ranks : 1) ? Again::yes : Again::in_other_ways;
}

/// Opens a file as the program wishes: calls about it are those of this opening alone, whatever other ranks have open.
void open_apart(const Call& call, const char* path, const std::shared_ptr<File>& file, Word& result) {
    release(*file);
    file->set_aside = true;
    result = same(call);
    if (static_cast<Id>(result) >= 0) adapter->files.add(path, file, static_cast<Id>(result));
}

/// H5Fcreate (flags, creation, access), H5Fopen (flags, access).
bool open(const Call& call, bool create, Word& result) {
    const char* path = argument<const char*>(call, 0);
    const policy::FileRule* rule = path != nullptr ? adapter->plan.match(path) : nullptr;
    if (rule == nullptr || !rule->hdf5.asks_for_anything()) return false;
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    const int access_at = create ? 3 : 2;
    const Id programs_access = argument<Id>(call, access_at);
    std::shared_ptr<File> file = new_file(*library, call.library, *rule, path, programs_access);
    const std::shared_ptr<File> before = adapter->files.find(call.library, path);
    const Again again = opened_before(*file, before.get());
    if (again == Again::in_other_ways) {
        file->refuse("the plan does not apply: some of the ranks have the file open already, in another way");
        open_apart(call, path, file, result);
        return true;
    }
    // A file that is open already is opened once more, with what the first open has found.
    const bool known = again == Again::yes;
    if (known) {
        release(*file);
        file = before;
    }
    if (!known && works_asynchronously(*library, programs_access)) {
        file->refuse("the plan does not apply: the file's VOL connector carries out calls after they have returned");
        release(*file);
        return false;
    }
    if (create || (argument<unsigned>(call, 1) & flag_write) != 0) file->writable = true;

    FailedCall failed(*library);
    // A copy of a list with a communicator costs a duplicate of that: such a list is changed itself, for the time of
    // the call, unless another thread may be using it in the library meanwhile.
    const bool in_place = !library->thread_safe && is_parallel(*library, programs_access);
    const List copy(*library, in_place ? by_default : programs_access, in_place ? nullptr : library->file_access);
    const Id access = in_place ? programs_access : copy.id();
    const List creation(*library, create ? argument<Id>(call, 2) : by_default, create ? library->file_create : nullptr);
    Words applied;
    Undo undo;
    std::array<Word, 16> arguments{};
    std::copy_n(call.arguments, call.count, arguments.begin());
    {
        const Quiet quiet(*library);
        if (access > 0) {
            const Size user_block = creation ? user_block_of(*library, creation.id()) : 0;
            change_access(*file, access, !create, user_block, applied, in_place ? &undo : nullptr);
            arguments[static_cast<std::size_t>(access_at)] = word_of(access);
        }
        if (creation) {
            change_creation(*file, creation.id(), access, file->lessons->most_chunks(), applied);
            arguments[2] = word_of(creation.id());
        }
    }
    if (access <= 0 || (create && !creation)) file->refuse("the program's lists cannot be copied");
    result = call.go_on(arguments.data());
    const bool good = static_cast<Id>(result) >= 0;
    if (good) {
        if (!known) say_applied(*file, applied);
        if (adapter->files.add(path, file, static_cast<Id>(result)) != file) release(*file);
    } else {
        failed.keep_errors();
        if (!known) release(*file);
    }
    return true;
}

/// HDF5 has closed the file.
void end_file(File& file) {
    file.note_unnamed();
    if (file.chunked > 0)
        file.note("chunks were given to " + std::to_string(file.chunked) +
                  (file.chunked > 1 ? " datasets" : " dataset"));
    if (file.reshaped_transfers > 0 && file.host.note != nullptr)
        file.host.note(file.path.c_str(), ("hdf5: transfers with memory in the shape of the file's selection: " +
                                           std::to_string(file.reshaped_transfers))
                                              .c_str());
    if (file.changed_transfers > 0 && file.host.note != nullptr)
        file.host.note(
            file.path.c_str(),
            ("hdf5: transfers in another mode than the program's: " + std::to_string(file.changed_transfers)).c_str());
    release(file);
}

/// What the cache holds, before a close lets it go.
void note_cache(const File& file, Id id) {
    if (!file.holds || file.rank != 0) return;
    std::size_t most = 0, clean = 0, now = 0;
    int entries = 0;
    const Quiet quiet(*file.library);
    if (file.library->H5Fget_mdc_size(id, &most, &clean, &now, &entries) >= 0)
        file.note("metadata in memory at close: " + exact_size_text(static_cast<std::int64_t>(now)) + " in " +
                  std::to_string(entries) + " entries");
}

/// A call that closes an id has succeeded: the id is there no more.
bool has_closed(Word result, bool by_reference) {
    const auto code = static_cast<std::int32_t>(result);
    return by_reference ? code == 0 : code >= 0;
}

/// H5Fclose, and H5Idec_ref of a file's id.
bool close(const Call& call, bool by_reference, Word& result) {
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    const Id id = argument<Id>(call, 0);
    const std::shared_ptr<File> file = adapter->files.of(*library, call.library, id);
    if (file == nullptr) return false;
    if (!file->set_aside && (!by_reference || library->H5Iget_ref(id) == 1)) file->unfilled->settle(*file, id);
    note_cache(*file, id);
    result = same(call);
    if (has_closed(result, by_reference) && adapter->files.remove_if_closed(file, false)) end_file(*file);
    return true;
}

bool is_file(const Call& call) {
    const Library* library = library_of(call);
    const Id id = argument<Id>(call, 0);
    return library != nullptr && id > 0 && library->H5Iget_type(id) == kind_file;
}

/// The dataset's id may come to mean another one.
void forget_dataset(const Call& call) {
    const std::lock_guard lock(adapter->mutex);
    if (adapter->watched.erase({call.library, argument<Id>(call, 0)}) > 0) --watched_datasets;
}

/// H5Dclose and its like, and H5Idec_ref: an object may be the last that keeps its file open.
bool close_object(const Call& call, bool by_reference, Word& result) {
    if (!adapter->files.some_linger() && watched_datasets.load() == 0) return false;
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    const std::shared_ptr<File> file =
        adapter->files.some_linger() ? adapter->files.of(*library, call.library, argument<Id>(call, 0)) : nullptr;
    result = same(call);
    if (!has_closed(result, by_reference)) return true;
    forget_dataset(call);
    if (file != nullptr && adapter->files.remove_if_closed(file, true)) end_file(*file);
    return true;
}

/// All files that are open, before all are closed.
void settle_all() {
    for (const auto& file : adapter->files.all()) {
        if (file->unfilled->none() || file->set_aside) continue;
        if (const Id id = adapter->files.id_of(*file); id > 0) file->unfilled->settle(*file, id);
    }
}

int keep_none(MPI_Comm, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
}

int on_finalize(MPI_Comm, int, void*, void*) {
    settle_all();
    return MPI_SUCCESS;
}

/// Attributes of MPI_COMM_SELF are deleted first of all in MPI_Finalize, the newest first: before HDF5's, which closes
/// all files.
void settle_before_finalize() {
    static std::once_flag once;
    std::call_once(once, [] {
        int key = MPI_KEYVAL_INVALID;
        if (PMPI_Comm_create_keyval(keep_none, on_finalize, &key, nullptr) != MPI_SUCCESS) return;
        PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
        PMPI_Comm_free_keyval(&key);  // freed when the attribute goes
    });
}

/// A call that all ranks make about a file, which reads, moves, copies or stores what its datasets have.
bool settle(const Call& call) {
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    const Id place = argument<Id>(call, 0);
    const std::shared_ptr<File> file = file_of(*library, call, place);
    if (file != nullptr) file->unfilled->settle(*file, place);
    return false;
}

/// H5close: HDF5 closes everything.
bool close_all(const Call& call, Word& result) {
    settle_all();
    result = same(call);
    if (static_cast<std::int32_t>(result) < 0) return true;
    {
        const std::lock_guard lock(adapter->mutex);
        adapter->watched.clear();
        watched_datasets = 0;
    }
    for (const auto& file : adapter->files.remove_where([&](const File& one) { return one.number == call.library; }))
        end_file(*file);
    return true;
}

// ------------------------------------------------------------------------------------------------------------- datasets

bool create(const Call& call, const CreateForm& form, Word& result) {
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    const std::shared_ptr<File> file = file_of(*library, call, argument<Id>(call, 0));
    if (file == nullptr) return false;
    const policy::Hdf5Options& wish = file->wish();
    if (!wish.never_fill && !wish.learn_chunks && wish.chunks.empty()) return false;
    std::optional<Lessons::Key> watched;
    result = create_dataset(*file, *file->lessons, form, call, watched);
    if (!file->unfilled->none() && adapter->world) settle_before_finalize();
    if (!watched) return true;
    file->lessons->begin(*watched);
    const std::lock_guard lock(adapter->mutex);
    const bool is_new =
        adapter->watched.insert_or_assign({call.library, static_cast<Id>(result)}, Watched{file->lessons, *watched})
            .second;
    if (is_new) ++watched_datasets;
    return true;
}

/// What a rank writes first.
void learn_from(const Library& library, std::uint32_t number, const Part& part) {
    Watched watched;
    {
        const std::lock_guard lock(adapter->mutex);
        const auto found = adapter->watched.find({number, part.dataset});
        if (found == adapter->watched.end()) return;
        watched = found->second;
        adapter->watched.erase(found);
        --watched_datasets;
    }
    const Quiet quiet(library);
    watched.lessons->tell(watched.key, box_of(library, part.space, watched.key.first));
}

/// What is read must have its fill values.
void before_read(File& file, const Move& move) {
    if (move.writes || file.unfilled->none()) return;
    const Library& library = *file.library;
    if (!file.parallel || file.ranks == 1 || mode_of(library, move.list) == collective) {
        file.unfilled->settle(file, move.parts.front().dataset);
        return;
    }
    for (const Part& part : move.parts) file.unfilled->read_alone(file, part.dataset, part.space);
}

/// A write that has failed does not count: what nobody else writes gets its fill value.
void after_write(const File& file, const Move& move, Word result) {
    if (!move.writes || file.unfilled->none() || static_cast<std::int32_t>(result) < 0) return;
    for (const Part& part : move.parts) file.unfilled->write(*file.library, part.dataset, part.space);
}

/// What is written to a virtual dataset, or read from it, is that of others, in any file. HDF5 has none where processes share a file.
void before_virtual(const Library& library, Id dataset) {
    for (const auto& file : adapter->files.all()) {
        if (file->parallel || file->unfilled->none()) continue;
        {
            const Quiet quiet(library);
            const List list = List::of_dataset(library, dataset);
            if (!list || library.H5Pget_layout(list.id()) != layout_virtual) return;
        }
        if (const Id id = adapter->files.id_of(*file); id > 0) file->unfilled->settle(*file, id);
    }
}

bool write_chunk(const Call& call, Word& result) {
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    const std::shared_ptr<File> file = file_of(*library, call, argument<Id>(call, 0));
    if (file == nullptr) return false;
    result = same(call);
    if (static_cast<std::int32_t>(result) >= 0)
        file->unfilled->write_chunk(*library, argument<Id>(call, 0), argument<const Size*>(call, 3));
    return true;
}

bool changes_mode(const File& file) {
    return file.parallel && file.wish().transfer != policy::Hdf5Transfer::as_program &&
           file.library->H5Pget_dxpl_mpio != nullptr && file.library->H5Pset_dxpl_mpio != nullptr;
}

/// As the rule has it.
Word move_under_rule(File& file, Move& move) {
    const auto carry_out = [&] { return changes_mode(file) ? transfer(file, move) : move.go_on(); };
    if (!file.wish().shapes_memory()) return carry_out();
    FailedCall failed(*file.library);
    const MemoryInFileShape memory(file, move);
    const Word result = carry_out();
    if (static_cast<std::int32_t>(result) < 0) failed.keep_errors();
    return result;
}

/// H5Dwrite, H5Dread and their forms for several datasets, which all lie in one file.
bool carry_out_move(const Call& call, Word& result) {
    const Library* library = library_of(call);
    Move move(call);
    if (library == nullptr || move.parts.empty()) return false;
    for (const Part& part : move.parts) {
        if (move.writes && watched_datasets.load() > 0) learn_from(*library, call.library, part);
        before_virtual(*library, part.dataset);
    }
    const std::shared_ptr<File> file = file_of(*library, call, move.parts.front().dataset);
    if (file == nullptr) return false;
    before_read(*file, move);
    const bool counts = move.writes && !file->unfilled->none();
    if (!counts && !changes_mode(*file) && !file->wish().shapes_memory()) return false;
    result = move_under_rule(*file, move);
    after_write(*file, move, result);
    return true;
}

bool of_open_file(const Call& call, Word& result) {
    const std::string_view symbol = call.function;
    if (symbol == "H5Fclose") return close(call, false, result);
    if (symbol == "H5Idec_ref") return is_file(call) ? close(call, true, result) : close_object(call, true, result);
    if (symbol == "H5close") return close_all(call, result);
    // H5Dcreate_async's are those of H5Dcreate2.
    if (symbol == "H5Dcreate2" || symbol == "H5Dcreate") return create(call, {1, 2, 3, 5}, result);
    if (symbol == "H5Dcreate1") return create(call, {1, 2, 3, 4}, result);
    if (symbol == "H5Dcreate_anon") return create(call, {-1, 1, 2, 3}, result);
    if (symbol == "H5Dwrite_chunk") return write_chunk(call, result);
    for (const std::string_view one : {"H5Dwrite", "H5Dread", "H5Dwrite_multi", "H5Dread_multi"})
        if (symbol == one) return carry_out_move(call, result);
    for (const std::string_view one : {"H5Fflush", "H5Dflush", "H5Oflush", "H5Ocopy", "H5Ldelete", "H5Ldelete_by_idx",
                                       "H5Gunlink", "H5Dset_extent", "H5Dextend"})
        if (symbol == one) return settle(call);
    for (const std::string_view one : {"H5Dclose", "H5Gclose", "H5Aclose", "H5Oclose", "H5Tclose"})
        if (symbol == one) return close_object(call, false, result);
    return false;
}

}  // namespace

void install(policy::PlanFile plan, Host host, bool world) {
    if (adapter != nullptr) return;
    const bool wished = std::any_of(plan.files.begin(), plan.files.end(),
                                    [](const policy::FileRule& rule) { return rule.hdf5.asks_for_anything(); });
    if (!wished) return;
    adapter = new Adapter;
    adapter->plan = std::move(plan);
    adapter->host = host;
    adapter->world = world;
    // Called after what HDF5 registers later, when it is used first, to close what is open.
    std::atexit([] { adapter->files.remove_where([](const File& file) { return !file.parallel; }); });
}

void shut_down() {
    if (adapter == nullptr) return;
    // A library that is built for MPI closes everything, one that is not does so when the process exits.
    adapter->files.remove_where([](const File& file) { return file.library->H5Pget_fapl_mpio != nullptr; });
}

bool carry_out(const adapters::Call& programs, Word& result) {
    if (adapter == nullptr || inside) return false;
    const Call call(programs);
    const bool creates = call.function == "H5Fcreate";
    const bool opens = creates || call.function == "H5Fopen";
    if (!opens && adapter->files.none()) return false;
    const adapters::Inside now(inside);
    return opens ? open(call, creates, result) : of_open_file(call, result);
}

}  // namespace ioweir::hdf5
