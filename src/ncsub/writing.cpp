#include "ncsub/writing.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/checked.hpp"
#include "base/guarded_files.hpp"
#include "base/raw_syscall.hpp"
#include "ncsub/files.hpp"

namespace ioweir::ncsub {
namespace {

constexpr std::string_view mark_text = "ioweir writing 1\n";

/// A folder, and a name in it.
struct Place {
    explicit Place(const std::string& path)
        : folder(guarded::Folder::follow(guarded::folder_name_of(path))), name(guarded::file_name_of(path)) {}
    /// What is there, a link's own; an errno value.
    int look(struct stat& status) const {
        return folder ? folder.value().status_of(name, status) : folder.error().number;
    }
    [[nodiscard]] bool has_file() const {
        struct stat status{};
        return look(status) == 0 && S_ISREG(status.st_mode);
    }

    Result<guarded::Folder> folder;
    std::string name;
};

/// Of the file beside a master.
Place mark_of(const std::string& path) { return Place(logical_path(without_prefix(path))); }

/// 0 or an errno value.
int lock(int descriptor, int operation) {
    while (::flock(descriptor, operation) != 0) {
        if (errno != EINTR) return errno;
    }
    return 0;
}

/// Where two texts of equal length differ: the first byte and one behind the last.
std::pair<std::size_t, std::size_t> difference(const std::string& one, const std::string& other) {
    std::size_t begin = 0, end = one.size();
    while (begin < end && one[begin] == other[begin]) ++begin;
    while (end > begin && one[end - 1] == other[end - 1]) --end;
    return {begin, end};
}

/// `text` at its place, over `expected`. 0 or an errno value.
int write_over(int descriptor, std::size_t at, std::string_view expected, std::string_view text) {
    std::string there(expected.size(), '\0');
    if (raw::pread(descriptor, there.data(), there.size(), static_cast<off_t>(at)) != std::ssize(there)) return EIO;
    if (there != expected) return EILSEQ;
    return raw::pwrite(descriptor, text.data(), text.size(), static_cast<off_t>(at)) == std::ssize(text) ? 0 : EIO;
}

}  // namespace

int hold_writing(const std::string& path) {
    constexpr int most_tries = 100;
    constexpr useconds_t pause_us = 1000;
    auto file = open_named(path);
    // is_written_now() of another process has it for a moment.
    for (int tries = 0; file && tries < most_tries; ++tries) {
        const int error = lock(file.value().descriptor(), LOCK_SH | LOCK_NB);
        if (error == 0) return file.value().release();
        if (error != EWOULDBLOCK) break;
        ::usleep(pause_us);
    }
    return -1;
}

bool is_written_now(const std::string& path) {
    const auto file = open_named(path);
    return file && lock(file.value().descriptor(), LOCK_EX | LOCK_NB) == EWOULDBLOCK;
}

std::optional<Error> end_writing(const std::string& path) {
    auto read = read_header(path);
    if (!read) return read.error();
    Header header = read.take();
    if (writing_of(header) != Writing::begun) return std::nullopt;
    // The two headers differ in nothing but the word.
    set_writing(header, Writing::begun);
    const std::string begun = encode(header);
    set_writing(header, Writing::ended);
    const std::string ended = encode(header);
    const auto [at, end] = difference(begun, ended);
    const std::string name = without_prefix(path);
    const auto file = open_named(path, O_RDWR);
    const int error = file ? write_over(file.value().descriptor(), at, std::string_view(begun).substr(at, end - at),
                                        std::string_view(ended).substr(at, end - at))
                           : file.error().number;
    if (error == 0) return std::nullopt;
    return Error{"a netCDF file cannot say that it is complete", name + ": " + std::strerror(error),
                 "`ioweir check` calls it unfinished; `ioweir merge -o OTHER` makes a file of it"};
}

int make_mark(const std::string& path) {
    const Place mark = mark_of(path);
    if (!mark.folder) return mark.folder.error().number;
    const guarded::Folder& folder = mark.folder.value();
    struct stat status{};
    const int descriptor =
        guarded::open_judged<guarded::Direct>(folder.descriptor(), mark.name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666,
                                              folder.owners(), guarded::Use::write, status);
    if (descriptor < 0) return errno;
    int error = 0;
    if (raw::pwrite(descriptor, mark_text.data(), mark_text.size(), 0) != std::ssize(mark_text)) error = EIO;
    if (error == 0 && ::fsync(descriptor) != 0 && errno != EINVAL) error = errno;
    raw::close(descriptor);
    if (error != 0)
        (void)folder.remove(mark.name);
    else
        (void)folder.make_durable();  // not every file system has that
    return error;
}

void remove_mark(const std::string& path) {
    const Place mark = mark_of(path);
    if (mark.folder) (void)mark.folder.value().remove(mark.name);
}

bool has_mark(const std::string& path) {
    struct stat status{};
    return mark_of(path).look(status) == 0;
}

std::string clear_mark(const std::string& path) {
    const Place mark = mark_of(path);
    struct stat status{};
    const int error = mark.look(status);
    if (error == ENOENT) return "";
    const std::string name = logical_path(without_prefix(path));
    if (error != 0) return guarded::cannot_use(name, error).message();
    if (S_ISLNK(status.st_mode)) return guarded::cannot_use(name, ELOOP).message();
    const guarded::Owners& owners = mark.folder.value().owners();
    if (const auto fault = guarded::why_not(status, owners, guarded::Use::write); fault != guarded::Fault::none)
        return guarded::cannot_use(name, EPERM, fault, &status, &owners).message();
    const int removed = mark.folder.value().remove(mark.name);
    return removed == 0 ? "" : guarded::cannot_use(name, removed).message();
}

namespace {

constexpr std::string_view logical_ending = ".ioweir-logical", merging_ending = ".ioweir-merging";

/// As many of the first bytes as `most`; nothing where it is no regular file that can be read.
std::optional<std::string> beginning_of(const std::string& path, std::size_t most) {
    const Place place(path);
    if (!place.has_file()) return std::nullopt;  // before it is opened: that alone makes some devices act
    struct stat status{};
    const int descriptor =
        guarded::open_beneath<guarded::Direct>(place.folder.value().descriptor(), place.name.c_str(), O_RDONLY);
    if (descriptor < 0) return std::nullopt;
    const guarded::File file(descriptor, status, path);
    auto text = file.read_part(0, static_cast<std::int64_t>(most));
    return text ? std::optional(text.take()) : std::nullopt;
}

/// "a.nc" of "a.nc.subfile_3.nc"; empty: it is no such name.
std::string master_of_subfile(const std::string& path) {
    constexpr std::string_view key = ".subfile_", ending = ".nc";
    const std::size_t at = path.rfind(key);
    if (at == std::string::npos || !path.ends_with(ending)) return {};
    const std::string digits = path.substr(at + key.size(), path.size() - at - key.size() - ending.size());
    return !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos ? path.substr(0, at) : "";
}

/// What master and subfile have in common; empty: it does not say.
std::string id_of(const std::string& path) {
    const auto header = read_header(path);
    const Attribute* const id = header ? find(header.value().attributes, "_ioweir.id") : nullptr;
    return id != nullptr ? id->bytes : std::string();
}

Leftover left_of(std::string file, std::string problem = {}) {
    Leftover left{std::move(file), std::move(problem), false};
    // What a link leads to is none of this folder's.
    if (Place(left.file).has_file() && is_written_now(left.file)) {
        left.in_use = true;
        left.problem = "a job writes " + left.file;
    }
    return left;
}

}  // namespace

std::optional<Leftover> leftover_at(const std::string& path) {
    if (path.ends_with(logical_ending)) {
        const auto begin = beginning_of(path, mark_text.size());
        if (!begin || !(begin->empty() || begin->starts_with("CDF") || *begin == mark_text)) return std::nullopt;
        const std::string file = path.substr(0, path.size() - logical_ending.size());
        struct stat status{};
        if (*begin != mark_text || Place(file).look(status) != 0) return left_of(file);
        return left_of(
            file, "it says that " + file + " was not completed: `ioweir merge --unfinished` makes one file of that");
    }
    if (path.ends_with(merging_ending)) {
        const auto begin = beginning_of(path, 3);
        if (!begin || !(begin->empty() || *begin == "CDF")) return std::nullopt;
        return left_of(path.substr(0, path.size() - merging_ending.size()));
    }
    const std::string master = master_of_subfile(path);
    struct stat info{};
    if (master.empty() || !Place(path).has_file()) return std::nullopt;
    // What a link leads to, or is no file, may have it.
    const bool has_master = Place(master).look(info) == 0;
    if (has_master && !S_ISREG(info.st_mode)) return std::nullopt;
    const std::string id = id_of(path);
    if (id.empty() || (has_master && id == id_of(master))) return std::nullopt;
    return left_of(master);
}

bool is_unfinished(const std::string& path, const Header& master) {
    return writing_of(master) == Writing::begun || has_mark(path);
}

std::int64_t end_of_data(const Header& header) {
    std::int64_t end = 0;
    for (const Variable& variable : header.variables) {
        const bool has_records = header.is_record(variable);
        if (has_records && header.records <= 0) continue;
        std::optional<std::int64_t> bytes = bytes_of(variable.type);
        for (std::size_t i = has_records ? 1 : 0; i < variable.dimensions.size() && bytes; ++i)
            bytes =
                checked_multiply(*bytes, header.dimensions[static_cast<std::size_t>(variable.dimensions[i])].length);
        std::optional<std::int64_t> before = 0;
        if (has_records) before = checked_multiply(header.records - 1, record_bytes(header));
        const auto begin = before ? checked_add(variable.begin, *before) : std::nullopt;
        const auto last = begin && bytes && *bytes > 0 ? checked_add(*begin, *bytes) : std::nullopt;
        end = std::max(end, last.value_or(0));  // numbers that do not fit are no file's
    }
    return end;
}

}  // namespace ioweir::ncsub
