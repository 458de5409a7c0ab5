#include "adapters/hdf5/adapter.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "adapters/call/inside.hpp"
#include "adapters/hdf5/datasets.hpp"
#include "adapters/hdf5/file.hpp"
#include "adapters/hdf5/memory_space.hpp"
#include "adapters/hdf5/transfer.hpp"
#include "base/size_text.hpp"

namespace ioweir::hdf5 {
namespace {

/// A dataset whose first write teaches.
struct Watched {
    std::shared_ptr<Lessons> lessons;
    Lessons::Key key;
};

struct Adapter {
    planner::PlanFile plan;
    Host host;
    bool world = false;
    std::mutex mutex;  // guards the tables, never held in a call of the library
    std::map<std::uint32_t, std::unique_ptr<Library>> libraries;
    std::map<std::pair<std::uint32_t, std::string>, std::shared_ptr<File>> files;
    std::map<std::pair<std::uint32_t, Id>, Watched> watched;
    std::shared_ptr<Lessons> lessons = std::make_shared<Lessons>();  // of files that all ranks have open
};
Adapter* adapter = nullptr;
std::atomic<int> open_files{0};
std::atomic<int> watched_datasets{0};
thread_local bool inside = false;  // the library's own calls, made for one of ours, go on as they are

Word same(const Call& call) { return call.invoke(call.real, call.arguments, call.count); }

/// The library that a call is for; null where it lacks functions, which is then left alone.
const Library* library_of(const Call& call) {
    const std::lock_guard lock(adapter->mutex);
    auto& known = adapter->libraries[call.library];
    if (!known) {
        known = std::make_unique<Library>();
        const char* missing = fill(*known, {call.real, adapter->host.find, adapter->host.find_object});
        if (missing != nullptr) {
            *known = {};
            if (adapter->host.note != nullptr)
                adapter->host.note(
                    "", (std::string("hdf5: the plan does not apply: the HDF5 library has no ") + missing).c_str());
        }
    }
    return known->H5open != nullptr ? known.get() : nullptr;
}

/// The file that an object lies in, if a rule is for it.
std::shared_ptr<File> file_of(const Library& library, std::uint32_t number, Id object) {
    std::array<char, 4096> name{};
    {
        const Quiet quiet(library);
        const std::int64_t length = library.H5Fget_name(object, name.data(), name.size());
        if (length <= 0 || length >= std::ssize(name)) return nullptr;
    }
    const std::lock_guard lock(adapter->mutex);
    const auto found = adapter->files.find({number, name.data()});
    return found != adapter->files.end() ? found->second : nullptr;
}

// ---------------------------------------------------------------------------------------------------------------- files

/// A file that is open already is opened once more, with what the first open has found.
std::shared_ptr<File> known_file(const Call& call, const char* path) {
    const std::lock_guard lock(adapter->mutex);
    const auto found = adapter->files.find({call.library, path});
    return found != adapter->files.end() ? found->second : nullptr;
}

std::shared_ptr<File> new_file(const Library& library, const planner::FileRule& rule, const char* path, Id access) {
    auto file = std::make_shared<File>();
    file->library = &library;
    file->host = adapter->host;
    file->rule = &rule;
    file->path = path;
    find_communicator(*file, access);
    int same_group = MPI_UNEQUAL;
    if (file->parallel && adapter->world) PMPI_Comm_compare(file->comm, MPI_COMM_WORLD, &same_group);
    const bool all_ranks = same_group == MPI_IDENT || same_group == MPI_CONGRUENT;
    file->lessons = all_ranks ? adapter->lessons : std::make_shared<Lessons>();
    return file;
}

void keep(const Call& call, const std::shared_ptr<File>& file) {
    if (++file->opens > 1) return;
    if (file->holds && file->rank == 0)
        if (const std::string wrong = make_mark(file->path); !wrong.empty()) file->note("no mark is made: " + wrong);
    const std::lock_guard lock(adapter->mutex);
    adapter->files[{call.library, file->path}] = file;
    ++open_files;
}

void say_applied(const File& file) {
    std::string text;
    for (const std::string& one : file.applied) text += (text.empty() ? "" : ", ") + one;
    if (file.writable && file.wish().never_fill) text += (text.empty() ? "" : ", ") + std::string("no fill values");
    file.note(text.empty() ? "nothing is changed at open" : "applied: " + text);
    if (file.holds)
        file.note(
            "a job that dies before the file is flushed or closed leaves it without the metadata held until then; "
            "ioweir check tells");
}

/// H5Fcreate (flags, creation, access), H5Fopen (flags, access).
bool open(const Call& call, bool create, Word& result) {
    const char* path = argument<const char*>(call, 0);
    const planner::FileRule* rule = path != nullptr ? adapter->plan.match(path) : nullptr;
    if (rule == nullptr || !rule->hdf5.wishes_anything()) return false;
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    const int access_at = create ? 3 : 2;
    const Id programs_access = argument<Id>(call, access_at);
    std::shared_ptr<File> file = known_file(call, path);
    const bool known = file != nullptr;
    if (!known) file = new_file(*library, *rule, path, programs_access);
    file->writable = file->writable || create || (argument<unsigned>(call, 1) & flag_write) != 0;

    FailedCall failed(*library);
    const List access(*library, programs_access, library->file_access);
    const List creation(*library, create ? argument<Id>(call, 2) : by_default, create ? library->file_create : nullptr);
    std::array<Word, 16> arguments{};
    std::copy_n(call.arguments, call.count, arguments.begin());
    {
        const Quiet quiet(*library);
        if (access) {
            const Size user_block = creation ? user_block_of(*library, creation.id()) : 0;
            change_access(*file, access.id(), !create, user_block);
            arguments[static_cast<std::size_t>(access_at)] = word_of(access.id());
        }
        if (creation) {
            change_creation(*file, creation.id(), file->lessons->most_chunks());
            arguments[2] = word_of(creation.id());
        }
    }
    if (!access || (create && !creation)) file->refuse("the program's lists cannot be copied");
    result = call.invoke(call.real, arguments.data(), call.count);
    if (static_cast<Id>(result) >= 0) {
        if (!known) say_applied(*file);
        keep(call, file);
    } else {
        failed.keep_errors();
        if (!known) release(*file);
    }
    return true;
}

/// All ids of the file are closed.
void end_file(File& file) {
    if (file.holds && file.rank == 0) remove_mark(file.path);
    if (file.chunked > 0) file.note("chunks were given to " + std::to_string(file.chunked) + " datasets");
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

void forget(const Call& call, const std::shared_ptr<File>& file) {
    if (--file->opens > 0) return;
    {
        const std::lock_guard lock(adapter->mutex);
        adapter->files.erase({call.library, file->path});
        --open_files;
    }
    end_file(*file);
}

/// H5Fclose, and H5Idec_ref of a file's id.
bool close(const Call& call, bool by_reference, Word& result) {
    constexpr int kind_file = 1;  // H5I_FILE
    const Library* library = library_of(call);
    const Id id = argument<Id>(call, 0);
    if (library == nullptr || (by_reference && (id <= 0 || library->H5Iget_type(id) != kind_file))) return false;
    const std::shared_ptr<File> file = file_of(*library, call.library, id);
    if (file == nullptr) return false;
    note_cache(*file, id);
    result = same(call);
    const auto code = static_cast<std::int32_t>(result);
    if (by_reference ? code == 0 : code >= 0) forget(call, file);
    return true;
}

/// H5Freopen: one more id.
bool reopen(const Call& call, Word& result) {
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    const std::shared_ptr<File> file = file_of(*library, call.library, argument<Id>(call, 0));
    if (file == nullptr) return false;
    result = same(call);
    if (static_cast<Id>(result) >= 0) ++file->opens;
    return true;
}

/// H5close: HDF5 closes everything.
bool close_all(const Call& call, Word& result) {
    result = same(call);
    std::map<std::pair<std::uint32_t, std::string>, std::shared_ptr<File>> all;
    {
        const std::lock_guard lock(adapter->mutex);
        all.swap(adapter->files);
        adapter->watched.clear();
        open_files = 0;
        watched_datasets = 0;
    }
    if (static_cast<std::int32_t>(result) >= 0)
        for (auto& [key, file] : all) end_file(*file);
    return true;
}

// ------------------------------------------------------------------------------------------------------------- datasets

bool create(const Call& call, const CreateForm& form, Word& result) {
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    const std::shared_ptr<File> file = file_of(*library, call.library, argument<Id>(call, 0));
    if (file == nullptr) return false;
    const planner::Hdf5Wish& wish = file->wish();
    if (!wish.never_fill && !wish.learn_chunks && wish.chunks.empty()) return false;
    std::optional<Lessons::Key> watched;
    result = create_dataset(*file, *file->lessons, form, call, watched);
    if (!watched) return true;
    file->lessons->begin(*watched);
    const std::lock_guard lock(adapter->mutex);
    adapter->watched[{call.library, static_cast<Id>(result)}] = {file->lessons, *watched};
    ++watched_datasets;
    return true;
}

/// What a rank writes first.
void learn_from(const Library& library, const Call& call) {
    Watched watched;
    {
        const std::lock_guard lock(adapter->mutex);
        const auto found = adapter->watched.find({call.library, argument<Id>(call, 0)});
        if (found == adapter->watched.end()) return;
        watched = found->second;
        adapter->watched.erase(found);
        --watched_datasets;
    }
    Lessons::Lesson* lesson = watched.lessons->find(watched.key);
    if (lesson == nullptr || lesson->first.seen) return;
    const Quiet quiet(library);
    lesson->first = box_of(library, argument<Id>(call, 3), watched.key.first);
}

bool move(const Call& call, bool write, Word& result) {
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    if (write && watched_datasets.load() > 0) learn_from(*library, call);
    const std::shared_ptr<File> file = file_of(*library, call.library, argument<Id>(call, 0));
    if (file == nullptr) return false;
    const bool changes_mode = file->parallel && file->wish().transfer != planner::Hdf5Transfer::as_program &&
                              library->H5Pget_dxpl_mpio != nullptr && library->H5Pset_dxpl_mpio != nullptr;
    if (!file->wish().shapes_memory()) {
        if (changes_mode) result = transfer(*file, call);
        return changes_mode;
    }
    FailedCall failed(*library);
    const MemoryInFileShape memory(*file, call);
    result = changes_mode ? transfer(*file, memory.call()) : same(memory.call());
    if (static_cast<std::int32_t>(result) < 0) failed.keep_errors();
    return true;
}

/// The dataset's id may come to mean another one.
void forget_dataset(const Call& call) {
    const std::lock_guard lock(adapter->mutex);
    if (adapter->watched.erase({call.library, argument<Id>(call, 0)}) > 0) --watched_datasets;
}

bool of_open_file(const Call& call, std::string_view symbol, Word& result) {
    if (symbol == "H5Fclose") return close(call, false, result);
    if (symbol == "H5Idec_ref") return close(call, true, result);
    if (symbol == "H5Freopen") return reopen(call, result);
    if (symbol == "H5close") return close_all(call, result);
    if (symbol == "H5Dcreate2") return create(call, {1, 2, 3, 5}, result);
    if (symbol == "H5Dcreate1") return create(call, {1, 2, 3, 4}, result);
    if (symbol == "H5Dcreate_anon") return create(call, {-1, 1, 2, 3}, result);
    if (symbol == "H5Dwrite") return move(call, true, result);
    if (symbol == "H5Dread") return move(call, false, result);
    if (symbol == "H5Dclose" && watched_datasets.load() > 0) forget_dataset(call);
    return false;
}

}  // namespace

void install(planner::PlanFile plan, Host host, bool world) {
    if (adapter != nullptr) return;
    const bool wished = std::any_of(plan.files.begin(), plan.files.end(),
                                    [](const planner::FileRule& rule) { return rule.hdf5.wishes_anything(); });
    if (!wished) return;
    adapter = new Adapter;
    adapter->plan = std::move(plan);
    adapter->host = host;
    adapter->world = world;
}

void shut_down() {
    if (adapter == nullptr) return;
    const std::lock_guard lock(adapter->mutex);
    for (auto& [key, file] : adapter->files)
        if (file->parallel && file->holds && file->rank == 0) remove_mark(file->path);
}

bool carry_out(const Call& call, Word& result) {
    if (adapter == nullptr || inside) return false;
    const std::string_view symbol = call.symbol;
    const bool creates = symbol == "H5Fcreate";
    if (!creates && symbol != "H5Fopen" && open_files.load() == 0) return false;
    const adapters::Inside now(inside);
    if (creates || symbol == "H5Fopen") return open(call, creates, result);
    return of_open_file(call, symbol, result);
}

}  // namespace ioweir::hdf5
