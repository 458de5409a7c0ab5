#include "adapters/pnetcdf/adapter.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/call/inside.hpp"
#include "adapters/pnetcdf/arguments.hpp"
#include "adapters/pnetcdf/file.hpp"
#include "adapters/pnetcdf/kinds.hpp"
#include "ncsub/call_form.hpp"
#include "ncsub/files.hpp"

namespace ioweir::pnetcdf {
namespace {

struct Adapter {
    policy::PlanFile plan;
    Host host;
    std::mutex mutex;  // guards the tables, never held in a call of the library
    std::map<std::uint32_t, std::unique_ptr<Library>> libraries;
    std::map<std::pair<std::uint32_t, int>, std::shared_ptr<File>> files;
};
Adapter* adapter = nullptr;
std::atomic<int> open_files{0};
thread_local bool inside = false;  // the library's own calls, made for one of ours, go on as they are

int code_of(Word word) { return static_cast<int>(word); }

/// The library that a call is for; null where it lacks functions, which is then left alone.
const Library* library_of(const Call& call) {
    const std::lock_guard lock(adapter->mutex);
    auto& known = adapter->libraries[call.library];
    if (!known) {
        known = std::make_unique<Library>();
        const char* missing = fill(*known, [&](const char* name) { return adapter->host.find(call.real, name); });
        if (missing != nullptr) {
            *known = {};
            if (adapter->host.note != nullptr)
                adapter->host.note(
                    "", (std::string("arrays are not divided over subfiles: the PnetCDF library has no ") + missing)
                            .c_str());
        }
    }
    return known->create != nullptr ? known.get() : nullptr;
}

std::shared_ptr<File> file_of(const Call& call, Kind kind) {
    const int place = kind == Kind::copy ? 3 : 0;
    if (call.count <= place) return nullptr;
    const std::lock_guard lock(adapter->mutex);
    const auto found = adapter->files.find({call.library, static_cast<int>(call.arguments[place])});
    return found != adapter->files.end() ? found->second : nullptr;
}

void keep(const Call& call, std::unique_ptr<File> file) {
    const std::lock_guard lock(adapter->mutex);
    const int ncid = file->ncid;
    adapter->files[{call.library, ncid}] = std::move(file);
    ++open_files;
}

void forget(const Call& call) {
    const std::lock_guard lock(adapter->mutex);
    adapter->files.erase({call.library, static_cast<int>(call.arguments[0])});
    --open_files;
}

/// The call with another file in the program's place.
int same_for(const Call& call, int ncid) {
    std::array<Word, 16> arguments{};
    for (int i = 0; i < call.count; ++i) arguments[static_cast<std::size_t>(i)] = call.arguments[i];
    arguments[0] = static_cast<Word>(ncid);
    return code_of(call.invoke(call.real, arguments.data(), call.count));
}

int same(const Call& call) { return code_of(call.invoke(call.real, call.arguments, call.count)); }

/// What this rank's own accesses have moved, wherever that lies, and the header of the one file, which is rank 0's to read and write. Not what
/// this rank has moved in subfiles for others.
int bytes_moved(const File& file, const Call& call) {
    auto* result = argument<Offset*>(call, 1);
    const bool put = std::string_view(call.symbol) == "ncmpi_inq_put_size";
    const auto ask = put ? file.library->inq_put_size : file.library->inq_get_size;
    Offset header = 0, in_master = 0;
    int code = ask(file.ncid, &header);
    if (code == no_error) code = ask(file.master, &in_master);
    if (code != no_error || result == nullptr) return code;
    *result = (file.rank == 0 ? header : 0) + in_master - (put ? file.master_header.put : file.master_header.get) +
              (put ? file.moved.put : file.moved.get);
    return code;
}

/// Does something to the master's header, and counts that apart from its data.
template <typename Change>
int with_header(File& file, Change&& change) {
    const Moved before = moved_in(file, file.master);
    const int code = change();
    const Moved after = moved_in(file, file.master);
    file.master_header.put += after.put - before.put;
    file.master_header.get += after.get - before.get;
    return code;
}

int count_requests(const File& file, const Call& call) {
    const int code = same_for(call, file.master);
    auto* count = __builtin_bit_cast(int*, call.arguments[1]);
    if (code == no_error && count != nullptr) *count += static_cast<int>(requests_begun(file));
    return code;
}

int fill_of(const File& file, const Call& call) {
    const int code = same(call);
    const auto variable = static_cast<std::size_t>(argument<int>(call, 1));
    auto* none = argument<int*>(call, 2);
    if (code == no_error && none != nullptr && file.state != File::State::define)
        *none = file.fills.wanted[variable] ? 0 : 1;
    return code;
}

/// In define mode the master follows when that ends.
int on_both(File& file, const Call& call) {
    int code = same(call);
    if (code != no_error || file.state == File::State::define) return code;
    code = same_for(call, file.master);
    if (code != no_error || std::string_view(call.symbol) != "ncmpi_rename_var") return code;
    const auto variable = static_cast<std::size_t>(static_cast<int>(call.arguments[1]));
    const auto* name = __builtin_bit_cast(const char*, call.arguments[2]);
    file.logical.header.variables[variable].name = name;
    for (const Subfile& subfile : file.subfiles)
        if (file.in_subfile[variable] >= 0 && code == no_error)
            code = file.library->rename_var(subfile.ncid, file.in_subfile[variable], name);
    return agree(file, code);
}

/// ncmpi_copy_att, whose fourth argument is the file that gets the attribute.
int copy_attribute(const File& file, const Call& call) {
    const int code = same(call);
    if (code != no_error || file.state == File::State::define) return code;
    const auto variable = static_cast<int>(call.arguments[4]);
    return file.library->copy_att(file.ncid, variable, __builtin_bit_cast(const char*, call.arguments[2]), file.master,
                                  variable);
}

/// Calls that only a file in data mode can get, about one variable.
int access(File& file, const Call& call) {
    const auto variable = argument<int>(call, 1);
    const auto form = *ncsub::parse_call(call.symbol);
    if (form.blocking() && form.collective && file.state == File::State::data && file.divided()) {
        const auto done = access_together(file, call);
        return done ? *done : same_for(call, file.master);
    }
    if (file.is_divided(variable)) return access_variable(file, call);
    const bool known = file.knows(variable);
    if (file.state == File::State::define && !form.blocking())
        return known ? same_for(call, file.master) : begin_undefined(file, call);
    if (file.state == File::State::define) return same(call);
    // A file type counts bytes as in the one file, and may lead to other variables.
    if (form.access == ncsub::Access::vard && known && file.divided()) return access_variable(file, call);
    return same_for(call, file.master);
}

int usage(const File& file, const Call& call) {
    const int code = same_for(call, file.master);
    auto* bytes = argument<Offset*>(call, 1);
    if (code == no_error && bytes != nullptr) *bytes += bytes_buffered(file);
    return code;
}

/// The master has no records of divided variables, and the logical file none at all.
int dimension(const File& file, const Call& call) {
    const int code = file.state == File::State::define ? same(call) : same_for(call, file.master);
    auto* length = argument<Offset*>(call, call.count - 1);
    if (code == no_error && length != nullptr && argument<int>(call, 1) == file.unlimited) *length = records_of(file);
    return code;
}

int fill(File& file, const Call& call) {
    if (const int error = same_record_on_all(file, call); error != no_error) return error;
    if (file.is_divided(argument<int>(call, 1))) return fill_record(file, call);
    return file.state == File::State::define ? same(call) : same_for(call, file.master);
}

/// ncmpi_sync_numrecs. Collective, in either mode.
int sync_records(File& file, const Call& call) {
    const int code = file.state == File::State::define ? same(call) : same_for(call, file.master);
    if (code != no_error || file.state == File::State::define) return code;
    return settle_records(file);
}

int end_file(File& file, const Call& call, bool abort) {
    // A file that is closed while it is being defined is defined first, as the library does it.
    int code = no_error;
    if (!abort && file.state == File::State::define && file.broken == no_error) {
        std::array<Word, 1> arguments{call.arguments[0]};
        Call end = call;
        end.symbol = "ncmpi_enddef";
        end.real = reinterpret_cast<void*>(file.library->enddef);
        end.arguments = arguments.data();
        end.count = 1;
        code = end_define(file, end);
    }
    // What was begun and not waited for is given up.
    const int left = requests_begun(file) == 0 ? no_error : error_pending;
    drop_requests(file);
    // Data are kept by an abort as well, but for those of a file that is being made.
    if (file.ended && file.state != File::State::define && file.broken == no_error)
        if (const int settled = settle_records(file); code == no_error) code = settled;
    if (file.divided()) note_clocks(file);
    int closed = close_file(file, abort);
    if (closed == no_error) closed = left;
    forget(call);
    return code != no_error ? code : closed;
}

int sync(File& file, const Call& call) {
    if (file.state == File::State::define) return same(call);
    const Timed calls(file.clocks.calls);
    int code = settle_records(file);
    if (code == no_error) code = same_for(call, file.master);
    {
        const Timed storage(file.clocks.storage);
        for (const Subfile& subfile : file.subfiles)
            if (code == no_error) code = same_for(call, subfile.ncid);
    }
    return agree(file, code);
}

/// Subfiles are never in independent mode: ranks open them for themselves then.
int change_mode(File& file, const Call& call) {
    int code = same(call);
    if (code == no_error) code = same_for(call, file.master);
    if (code != no_error) return code;
    const auto before = file.state;
    file.state =
        std::string_view(call.symbol) == "ncmpi_begin_indep_data" ? File::State::independent : File::State::data;
    return before == File::State::independent && file.state != before ? settle_records(file) : code;
}

int carry_out_in(File& file, Kind kind, const Call& call) {
    if (file.broken != no_error && kind != Kind::close && kind != Kind::abort && kind != Kind::logical)
        return file.broken;
    switch (kind) {
        case Kind::end_define:
            if (file.state != File::State::define) return same(call);
            return with_header(file, [&] { return end_define(file, call); });
        case Kind::begin_define:
            return with_header(file, [&] { return begin_define(file, call); });
        case Kind::close:
        case Kind::abort:
            return end_file(file, call, kind == Kind::abort);
        case Kind::access:
            return access(file, call);
        case Kind::several:
            return access_several(file, call);
        case Kind::wait:
            return wait_alone(file, call);
        case Kind::wait_all:
            return wait_all(file, call);
        case Kind::cancel:
            return cancel(file, call);
        case Kind::requests:
            return count_requests(file, call);
        case Kind::usage:
            return usage(file, call);
        case Kind::detach:
            return bytes_buffered(file) > 0 ? error_pending_bput : same_for(call, file.master);
        case Kind::fill_record:
            return fill(file, call);
        case Kind::records:
            return sync_records(file, call);
        case Kind::master:
        case Kind::path_of:
            return same_for(call, file.master);
        case Kind::both:
            return on_both(file, call);
        case Kind::copy:
            return copy_attribute(file, call);
        case Kind::mode:
            return change_mode(file, call);
        case Kind::sync:
            return sync(file, call);
        case Kind::dimension:
            return dimension(file, call);
        case Kind::fill_of:
            return fill_of(file, call);
        case Kind::bytes:
            return bytes_moved(file, call);
        default:
            return same(call);
    }
}

/// Does the library say that storage has failed, and not that the program is wrong? System's error numbers are positive.
bool is_of_storage(int code) {
    return code > 0 || code == error_file || code == error_write || code == error_space || code == error_quota ||
           code == error_io;
}

int of_file(File& file, Kind kind, const Call& call) {
    const int code = carry_out_in(file, kind, call);
    // The file itself is gone after a close.
    if (kind != Kind::close && kind != Kind::abort && is_of_storage(code)) file.lost_data = true;
    return code;
}

bool create(const Call& call, Word& result) {
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    // What is there may be a master: its subfiles go with it.
    const auto* path = __builtin_bit_cast(const char*, call.arguments[1]);
    const auto old_subfiles = path != nullptr ? subfiles_before(call) : std::vector<std::string>{};
    std::unique_ptr<File> file;
    const auto code = create_file(*library, adapter->host, adapter->plan, call, file);
    result = word_of(code ? *code : same(call));
    // Also where the library only says that ranks gave different modes.
    if (file || code_of(result) == no_error) remove_subfiles(old_subfiles);
    if (file) keep(call, std::move(file));
    return true;
}

bool open(const Call& call, Word& result) {
    const Library* library = library_of(call);
    if (library == nullptr) return false;
    std::unique_ptr<File> file;
    result = word_of(open_file(*library, adapter->host, call, file));
    if (file) keep(call, std::move(file));
    return true;
}

bool remove(const Call& call, Word& result) {
    const auto* path = __builtin_bit_cast(const char*, call.arguments[0]);
    const auto subfiles = path != nullptr ? ncsub::subfiles_of(path) : std::vector<std::string>{};
    if (subfiles.empty()) return false;
    result = word_of(same(call));
    if (code_of(result) == no_error) remove_subfiles(subfiles);
    return true;
}

/// ncmpi_inq_files_opened: those of the program, without what lies underneath. The library has the program's own ncids open as well.
bool list_files(const Call& call, Word& result) {
    auto* count = argument<int*>(call, 0);
    auto* ncids = argument<int*>(call, 1);
    if (count == nullptr) return false;
    int open = 0;
    std::array<Word, 2> arguments{word_of(&open), word_of(static_cast<int*>(nullptr))};
    result = call.invoke(call.real, arguments.data(), call.count);
    if (code_of(result) != no_error) return true;
    std::vector<int> all(static_cast<std::size_t>(open));
    arguments[1] = word_of(all.data());
    result = call.invoke(call.real, arguments.data(), call.count);
    if (code_of(result) != no_error) return true;
    std::set<int> underneath;
    {
        const std::lock_guard lock(adapter->mutex);
        for (const auto& [key, file] : adapter->files) {
            if (key.first != call.library) continue;
            underneath.insert(file->master);
            for (const auto* subfiles : {&file->subfiles, &file->alone})
                for (const Subfile& subfile : *subfiles) underneath.insert(subfile.ncid);
        }
    }
    std::erase_if(all, [&](int ncid) { return underneath.contains(ncid); });
    *count = static_cast<int>(all.size());
    if (ncids != nullptr) std::copy(all.begin(), all.end(), ncids);
    return true;
}

}  // namespace

void install(policy::PlanFile plan, Host host) {
    if (adapter != nullptr) return;
    adapter = new Adapter;
    adapter->plan = std::move(plan);
    adapter->host = host;
}

bool carry_out(const Call& call, Word& result) {
    if (adapter == nullptr || inside) return false;
    const Kind kind = kind_of(call.symbol);
    const bool names_file = kind == Kind::create || kind == Kind::open || kind == Kind::remove;
    if (!names_file && open_files.load() == 0) return false;
    if (kind == Kind::files) {
        const adapters::Inside now(inside);
        return list_files(call, result);
    }
    if (!names_file) {
        const std::shared_ptr<File> file = file_of(call, kind);
        if (!file) return false;
        const adapters::Inside now(inside);
        result = word_of(of_file(*file, kind, call));
        return true;
    }
    const adapters::Inside now(inside);
    if (kind == Kind::create) return create(call, result);
    return kind == Kind::open ? open(call, result) : remove(call, result);
}

}  // namespace ioweir::pnetcdf
