// Creating, opening, closing and removing files that are divided.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "adapters/pnetcdf/arguments.hpp"
#include "adapters/pnetcdf/early.hpp"
#include "adapters/pnetcdf/file.hpp"
#include "adapters/pnetcdf/subfile_options.hpp"
#include "base/raw_syscall.hpp"
#include "base/standard_error.hpp"
#include "exchange/delivery.hpp"
#include "ncsub/access.hpp"
#include "ncsub/files.hpp"
#include "ncsub/writing.hpp"

namespace ioweir::pnetcdf {
namespace {

/// Empty: it cannot be told.
std::string current_folder() {
    std::array<char, PATH_MAX> name{};
    return ::getcwd(name.data(), name.size()) != nullptr ? name.data() : "";
}

void take_name(File& file, const char* path) {
    file.path = path;
    file.folder = current_folder();
}

void take_communicators(File& file, MPI_Comm comm) {
    PMPI_Comm_rank(comm, &file.rank);
    PMPI_Comm_size(comm, &file.ranks);
    PMPI_Comm_split(comm, 0, file.rank, &file.comm);
    PMPI_Comm_set_errhandler(file.comm, MPI_ERRORS_RETURN);
    const char* safe = std::getenv("PNETCDF_SAFE_MODE");
    file.safe = safe != nullptr && *safe != '0';
}

/// The logical header as a file in memory, opened by this rank alone: nothing has to be written where the data are.
int open_logical_header(File& file) {
    // Where records may be added, they are counted outside of it, and the library has none to move when the header grows.
    ncsub::Header header = file.logical.header;
    if (file.writable) header.records = 0;
    const std::string bytes = ncsub::encode(header);
    file.header_descriptor = ::memfd_create("ioweir-logical-header", MFD_CLOEXEC);
    if (file.header_descriptor < 0) return error_memory;
    std::int64_t end = std::ssize(bytes);
    for (const ncsub::Variable& variable : file.logical.header.variables)
        end = std::max(end, variable.begin + variable.vsize);
    if (raw::pwrite(file.header_descriptor, bytes.data(), bytes.size(), 0) != std::ssize(bytes) ||
        ::ftruncate(file.header_descriptor, end) != 0)
        return error_memory;
    const std::string name = "/proc/self/fd/" + std::to_string(file.header_descriptor);
    // With the program's hints, some of which say where variables are to begin.
    return file.library->open(MPI_COMM_SELF, name.c_str(), file.mode, file.has_info ? file.info : MPI_INFO_NULL,
                              &file.ncid);
}

/// Finds out whether the subfiles are those of this master, and how many records they have; collective. Each is looked at by one rank.
int check_subfiles(File& file) {
    const ncsub::Part mine = file.groups().subfiles_of(file.rank);
    std::array<std::int64_t, 2> most{std::max<std::int64_t>(0, file.logical.header.records), no_error};
    for (std::int64_t number = mine.begin; number < mine.end(); ++number) {
        if (file.groups().ranks_of(number).begin != file.rank) continue;
        const std::string path = ncsub::subfile_path(file.logical, file.path, number);
        const auto header = ncsub::read_subfile_header(path);
        const auto problem =
            header ? check_subfile(file.logical, header.value(), number, path) : std::optional<Error>(header.error());
        if (!problem) {
            most[0] = std::max(most[0], header.value().records);
            continue;
        }
        say_line("ioweir: " + problem->message() + "\n");
        note(file, problem->message());
        most[1] = -error_not_netcdf;
    }
    if (PMPI_Allreduce(MPI_IN_PLACE, most.data(), 2, MPI_INT64_T, MPI_MAX, file.comm) != MPI_SUCCESS) return error_file;
    file.records = file.logical.header.records = most[0];
    return static_cast<int>(-most[1]);
}

int open_subfiles(File& file) {
    const ncsub::Part mine = file.groups().subfiles_of(file.rank);
    PMPI_Comm_split(file.comm, static_cast<int>(mine.begin), file.rank, &file.group);
    PMPI_Comm_set_errhandler(file.group, MPI_ERRORS_RETURN);
    int error = no_error;
    for (std::int64_t number = mine.begin; number < mine.end(); ++number) {
        Subfile subfile{number, -1};
        const std::string path = ncsub::subfile_path(file.logical, file.path, number);
        const int code = file.library->open(file.group, path.c_str(), file.mode,
                                            file.has_info ? file.info : MPI_INFO_NULL, &subfile.ncid);
        if (code != no_error) {
            error = code;
            subfile.ncid = -1;
        }
        file.subfiles.push_back(subfile);
    }
    int next = 0;
    for (const auto& division : file.logical.divisions) file.in_subfile.push_back(division ? next++ : -1);
    find_records(file);
    if (file.writable || file.subfiles.size() > 1) open_early(file);
    return agree(file, error);
}

/// Finds places for the subfiles, and makes room for the logical header. What is wrong, in words for all ranks; empty: nothing. Collective.
std::string place_subfiles(File& file) {
    std::string lies_there = file.rank == 0 ? ncsub::clear_mark(file.path) : "";
    (void)exchange::broadcast(file.comm, lies_there);
    if (!lies_there.empty()) return lies_there;
    if (file.options.rule == nullptr || file.host.find_places == nullptr) return "";
    Places places = file.host.find_places(ncsub::without_prefix(file.path), file.comm, *file.options.rule);
    file.make_subfile = std::move(places.make);
    int has_places = file.make_subfile ? 1 : 0;
    PMPI_Bcast(&has_places, 1, MPI_INT, 0, file.comm);
    file.subfiles_have_places = has_places != 0;
    PMPI_Bcast(&places.count, 1, MPI_INT64_T, 0, file.comm);
    (void)exchange::broadcast(file.comm, places.why_not);
    if (file.rank == 0 && !places.said.empty()) note(file, "subfiles: " + places.said);
    file.options.subfiles = places.count;
    if (places.count > 0) return "";
    return places.why_not.empty() ? "no storage targets are known at its path" : places.why_not;
}

void keep_info(File& file, MPI_Info info) {
    file.has_info = info != MPI_INFO_NULL && PMPI_Info_dup(info, &file.info) == MPI_SUCCESS;
}

/// As the library sees it, with PnetCDF's names or the paper's: rank 0 looks closer. The same on all ranks.
bool may_be_master(const Library& library, int ncid) {
    int type = 0, variables = 0, dimensions = 0;
    Offset length = 0;
    if (library.inq_att(ncid, global, "_PnetCDF_SubFiling.num_subfiles", &type, &length) == no_error) return true;
    if (library.inq(ncid, nullptr, &variables, nullptr, nullptr) != no_error) return false;
    for (int v = 0; v < variables; ++v)
        if (library.inq_att(ncid, v, "num_subfiles", &type, &length) == no_error && length == 1 && type != type_text &&
            library.inq_att(ncid, v, "ndims_org", &type, &length) == no_error && length == 1 && type != type_text &&
            library.inq_var(ncid, v, nullptr, nullptr, &dimensions, nullptr, nullptr) == no_error && dimensions == 0)
            return true;
    return false;
}

void release(File& file) {
    if (file.group != MPI_Comm{} && file.group != MPI_COMM_NULL) PMPI_Comm_free(&file.group);
    if (file.comm != MPI_Comm{} && file.comm != MPI_COMM_NULL) PMPI_Comm_free(&file.comm);
    if (file.has_info) PMPI_Info_free(&file.info);
    file.has_info = false;
    if (file.header_descriptor >= 0) raw::close(file.header_descriptor);
    file.header_descriptor = -1;
    if (file.writing_descriptor >= 0) raw::close(file.writing_descriptor);
    file.writing_descriptor = -1;
}

/// A file that is there is opened for writing: it says so, if it can. `header`: the master's, as rank 0 has found it. Collective.
int begin_writing_again(File& file, const ncsub::Header& header) {
    if (!file.writable) {
        if (ncsub::writing_of(header) == ncsub::Writing::begun && file.rank == 0)
            note(file, "writing was begun and not ended: a job still writes it, or has died");
        return no_error;
    }
    if (file.rank == 0) {
        file.writing_descriptor = ncsub::hold_writing(file.path);
        (void)ncsub::follow_master_at(file.path);  // its mode may have been changed by hand
    }
    const ncsub::Writing writing = ncsub::writing_of(header);
    file.says_ended = writing == ncsub::Writing::ended;
    if (writing == ncsub::Writing::unsaid) {
        int error = file.rank == 0 ? ncsub::make_mark(file.path) : 0;
        PMPI_Bcast(&error, 1, MPI_INT, 0, file.comm);
        file.has_mark = error == 0;
        file.says_ended = error != EEXIST;  // where nobody can say it, nobody has said it
    }
    if (!file.says_ended)
        note(file, "it was not complete when it was opened for writing, and `ioweir check` goes on saying so");
    if (writing != ncsub::Writing::ended) return no_error;
    const ncsub::Attribute begun = ncsub::writing_attribute(ncsub::Writing::begun);
    const int error =
        file.library->put_att_text(file.master, global, begun.name.c_str(), begun.count, begun.bytes.data());
    return error != no_error ? error : begin_writing(file);
}

/// All files were closed by this rank with `result`: they say that they are complete, if they are. Collective.
int finish_writing(const File& file, int result) {
    const bool mine = result == no_error && file.broken == no_error && !file.lost_data;
    int error = agree(file, mine ? no_error : error_file);
    if (error != no_error) return no_error;  // whoever had it has told it
    if (file.rank == 0) {
        const std::string path = path_now(file);
        if (const auto problem = ncsub::end_writing(path)) {
            complain(file, problem->message());
            error = error_file;
        } else if (file.has_mark) {
            ncsub::remove_mark(path);
        }
    }
    return agree(file, error);  // no rank goes on before it says so
}

}  // namespace

namespace {

/// Errors with which the library goes on: it takes the root's mode where ranks give different ones, and says so to the others.
bool goes_on(int code) {
    return code == no_error || code == error_open_mode || code == error_create_mode || code == error_padding;
}

void take_roots_mode(File& file) {
    PMPI_Bcast(&file.mode, 1, MPI_INT, 0, file.comm);
    file.writable = file.writable || (file.mode & mode_write) != 0;
}

}  // namespace

std::optional<int> create_file(const Library& library, const Host& host, const policy::PlanFile& plan, const Call& call,
                               std::unique_ptr<File>& result) {
    const auto comm = argument<MPI_Comm>(call, 0);
    const auto* path = argument<const char*>(call, 1);
    const auto mode = argument<int>(call, 2);
    const auto info = argument<MPI_Info>(call, 3);
    auto* ncid = argument<int*>(call, 4);
    if (path == nullptr || ncid == nullptr || (mode & mode_netcdf4) != 0) return std::nullopt;
    const FoundOptions found = find_subfile_options(plan, path, comm, info);
    if (!found.options && found.problem.empty()) return std::nullopt;

    auto file = std::make_unique<File>();
    file->library = &library;
    file->host = host;
    take_name(*file, path);
    file->mode = mode;
    file->writable = true;
    take_communicators(*file, comm);
    if (!found.options) {
        const std::string said = "its arrays are not divided over subfiles: " + found.problem;
        found.is_only_noted ? note(*file, said) : complain(*file, said);
        release(*file);
        return std::nullopt;
    }
    file->options = *found.options;
    if (const std::string why_not = place_subfiles(*file); !why_not.empty()) {
        complain(*file, "its arrays are not divided over subfiles: " + why_not);
        release(*file);
        return std::nullopt;
    }
    keep_info(*file, info);
    const int said = library.create(comm, path, mode, info, &file->master);
    if (!goes_on(said)) {
        release(*file);
        return said;
    }
    take_roots_mode(*file);
    file->header_path = ncsub::logical_path(path);
    // A new file: over what lies there meanwhile, a link among it, nobody writes.
    const int code = library.create(comm, file->header_path.c_str(), file->mode | mode_noclobber, info, &file->ncid);
    if (code != no_error) {
        library.abort(file->master);
        release(*file);
        return code;
    }
    if (file->rank == 0) file->writing_descriptor = ncsub::hold_writing(file->path);
    file->says_ended = true;
    *ncid = file->ncid;
    result = std::move(file);
    return said;
}

int begin_writing(File& file) {
    file.says_begun = true;
    return file.library->sync(file.master);
}

int open_file(const Library& library, const Host& host, const Call& call, std::unique_ptr<File>& result) {
    const auto comm = argument<MPI_Comm>(call, 0);
    const auto* path = argument<const char*>(call, 1);
    auto* ncid = argument<int*>(call, 4);
    const int said = static_cast<int>(call.invoke(call.real, call.arguments, call.count));
    if (!goes_on(said) || path == nullptr) return said;
    if (!may_be_master(library, *ncid)) return said;

    auto file = std::make_unique<File>();
    file->library = &library;
    file->host = host;
    take_name(*file, path);
    file->mode = argument<int>(call, 2);
    file->master = *ncid;
    file->state = File::State::data;
    file->ended = true;
    take_communicators(*file, comm);
    take_roots_mode(*file);
    keep_info(*file, argument<MPI_Info>(call, 3));
    // Rank 0 reads the header, so that all have the same one.
    std::string bytes;
    if (file->rank == 0) {
        const auto header = ncsub::read_master(file->path);
        if (header) {
            bytes = ncsub::encode(header.value());
        } else {
            complain(*file, header.error().message());
        }
    }
    (void)exchange::broadcast(file->comm, bytes);
    int code = error_not_netcdf;
    if (!bytes.empty()) {
        const auto header = ncsub::decode(bytes, file->path);
        auto logical = ncsub::logical_of(header.value().header, file->path);
        if (logical) {
            file->logical = logical.take();
            file->options.subfiles = file->logical.subfiles;  // for variables that are added
            // Nobody opens a file that others know to be the wrong one.
            code = check_subfiles(*file);
            if (code == no_error) code = agree(*file, open_logical_header(*file));
            if (code == no_error) code = open_subfiles(*file);
            if (code == no_error) code = agree(*file, begin_writing_again(*file, header.value().header));
        } else {
            complain(*file, logical.error().message());
        }
    }
    if (code != no_error) {
        (void)close_file(*file, false);
        return code;
    }
    (void)find_fills(*file);
    file->master_header = moved_in(*file, file->master);
    *ncid = file->ncid;
    result = std::move(file);
    return said;
}

int close_file(File& file, bool abort) {
    const Library& library = *file.library;
    int result = no_error;
    const auto keep = [&](int code) {
        if (result == no_error) result = code;
    };
    if (abort && file.master >= 0) {
        // A new file that is given up while it is being defined is removed by the library, and its subfiles are not made yet.
        keep(library.abort(file.master));
        file.master = -1;
    }
    close_early(file);
    keep(close_alone(file));
    for (Subfile& subfile : file.subfiles)
        if (subfile.ncid >= 0) keep(library.close(subfile.ncid));
    if (file.master >= 0) keep(library.close(file.master));
    // What was defined and not ended is dropped: the file is about to go.
    if (file.ncid >= 0 && file.state == File::State::define)
        (void)library.abort(file.ncid);
    else if (file.ncid >= 0)
        (void)library.close(file.ncid);
    if (!file.header_path.empty() && file.rank == 0) ncsub::remove_mark(path_now(file));
    int agreed = agree(file, result);
    if (agreed == no_error && (file.says_begun || file.has_mark) && file.says_ended)
        agreed = finish_writing(file, result);
    release(file);
    return result != no_error ? result : agreed;
}

Moved moved_in(const File& file, int ncid) {
    Moved moved;
    (void)file.library->inq_put_size(ncid, &moved.put);
    (void)file.library->inq_get_size(ncid, &moved.get);
    return moved;
}

void note_clocks(const File& file) {
    const Clocks& mine = file.clocks;
    std::array<std::int64_t, 4> sums{mine.calls, mine.exchange, mine.exchange_processor, mine.storage};
    std::array<std::int64_t, 2> bounds{mine.storage, -mine.storage};  // the most, the least
    PMPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_INT64_T, MPI_SUM, file.comm);
    PMPI_Allreduce(MPI_IN_PLACE, bounds.data(), static_cast<int>(bounds.size()), MPI_INT64_T, MPI_MAX, file.comm);
    if (file.rank != 0 || sums[0] == 0) return;
    constexpr double second = 1e9;
    std::array<char, 240> text{};
    std::snprintf(
        text.data(), text.size(),
        "subfiles%s: all ranks' calls took %.4f s, of these exchange %.4f s (%.4f s of the processor), storage "
        "%.4f s; storage of a rank %.4f to %.4f s",
        file.writable ? "" : ", only read", static_cast<double>(sums[0]) / second,
        static_cast<double>(sums[1]) / second, static_cast<double>(sums[2]) / second,
        static_cast<double>(sums[3]) / second, static_cast<double>(-bounds[1]) / second,
        static_cast<double>(bounds[0]) / second);
    note(file, text.data());
}

std::vector<std::string> subfiles_before(const Call& call) {
    int rank = 0;
    PMPI_Comm_rank(argument<MPI_Comm>(call, 0), &rank);
    return rank == 0 ? ncsub::subfiles_of(argument<const char*>(call, 1)) : std::vector<std::string>{};
}

void remove_subfiles(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) ncsub::remove_subfile(path);
}

std::string path_now(const File& file) {
    const std::string bare = ncsub::without_prefix(file.path);
    if (bare.starts_with('/') || file.folder.empty() || file.folder == current_folder()) return file.path;
    return file.path.substr(0, file.path.size() - bare.size()) + file.folder + "/" + bare;
}

int agree(const File& file, int error) {
    int least = error;
    if (file.comm != MPI_Comm{} && PMPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, file.comm) != MPI_SUCCESS)
        return error_file;
    return least;
}

void note(const File& file, const std::string& text) {
    if (file.host.note != nullptr) file.host.note(file.path.c_str(), text.c_str());
}

void complain(const File& file, const std::string& text) {
    if (file.rank == 0)
        complain_here(file, text);
    else
        note(file, text);
}

void complain_here(const File& file, const std::string& text) {
    say_line("ioweir: " + file.path + ": " + text + "\n");
    note(file, text);
}

}  // namespace ioweir::pnetcdf
