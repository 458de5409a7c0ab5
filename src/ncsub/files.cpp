#include "ncsub/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/container_met.hpp"
#include "base/file_access.hpp"
#include "base/followed_path.hpp"
#include "base/guarded_files.hpp"
#include "base/raw_syscall.hpp"
#include "ncsub/plain_names.hpp"
#include "ncsub/writing.hpp"

namespace ioweir::ncsub {
namespace {

Error failed(const std::string& what, const std::string& path, int error) {
    return {what, path + ": " + std::strerror(error), "is it there, with the rights that are needed, and room?", error};
}

/// An open file.
class Open {
public:
    Open(guarded::File file, std::string path) : path_(std::move(path)), file_(std::move(file)) {}
    [[nodiscard]] int fd() const { return file_.descriptor(); }
    [[nodiscard]] std::int64_t bytes() const { return file_.bytes(); }
    [[nodiscard]] const std::string& path() const { return path_; }

    /// Bytes that were read, less than asked for at the end of the file; -1: errno says why.
    ssize_t read(char* to, std::size_t bytes, std::int64_t at) const {
        std::size_t got = 0;
        while (got < bytes) {
            const ssize_t length = raw::pread(fd(), to + got, bytes - got, at + static_cast<off_t>(got));
            if (length < 0 && errno == EINTR) continue;
            if (length < 0) return -1;
            if (length == 0) break;
            got += static_cast<std::size_t>(length);
        }
        return static_cast<ssize_t>(got);
    }
    /// 0 or an errno value.
    [[nodiscard]] int write(const char* from, std::size_t bytes, std::int64_t at) const {
        for (std::size_t done = 0; done < bytes;) {
            const ssize_t length = raw::pwrite(fd(), from + done, bytes - done, at + static_cast<off_t>(done));
            if (length < 0 && errno == EINTR) continue;
            if (length <= 0) return length < 0 ? errno : EIO;
            done += static_cast<std::size_t>(length);
        }
        return 0;
    }

private:
    std::string path_;
    guarded::File file_;
};

enum class Role : std::uint8_t { master, subfile };

Result<Open> open_to_read(const std::string& path, Role role) {
    auto file = role == Role::master ? open_named(path) : open_subfile(path);
    if (!file) return file.error();
    return Open(file.take(), path);
}

std::int64_t product(const Header& header, const std::vector<std::int64_t>& ids, std::size_t from, std::size_t to) {
    std::int64_t result = 1;
    for (std::size_t i = from; i < to; ++i) result *= header.dimensions[static_cast<std::size_t>(ids[i])].length;
    return result;
}

/// Copies what is there, and leaves blocks of zeros out.
class Copier {
public:
    explicit Copier(const Open& output) : output_(output), buffer_(block_bytes) {}

    /// The end of the last byte that the source had; -1: it had none. Empty error: all went well.
    [[nodiscard]] std::optional<Error> copy(const Open& source, const Copy& what) {
        for (std::int64_t done = 0; done < what.bytes;) {
            const auto wanted = static_cast<std::size_t>(std::min(block_bytes, what.bytes - done));
            const ssize_t got = source.read(buffer_.data(), wanted, what.from + done);
            if (got < 0) return failed("a file cannot be read", source.path(), errno);
            if (got == 0) break;
            const std::int64_t at = what.to + done;
            const bool zeros = std::all_of(buffer_.begin(), buffer_.begin() + got, [](char c) { return c == 0; });
            if (const int error = zeros ? 0 : output_.write(buffer_.data(), static_cast<std::size_t>(got), at);
                error != 0)
                return failed("a file cannot be written", output_.path(), error);
            end_ = std::max(end_, at + got);
            done += got;
            if (static_cast<std::size_t>(got) < wanted) break;  // what follows was never written
        }
        return std::nullopt;
    }
    [[nodiscard]] std::int64_t end() const { return end_; }

private:
    static constexpr std::int64_t block_bytes = 1 << 20;
    const Open& output_;
    std::vector<char> buffer_;
    std::int64_t end_ = 0;
};

/// The header that a file begins with.
Result<Header> header_in(const Open& file) {
    const std::string& path = file.path();
    constexpr std::size_t first_bytes = 64 * 1024;
    for (std::size_t wanted = first_bytes;; wanted *= 4) {
        std::string bytes(wanted, '\0');
        const ssize_t got = file.read(bytes.data(), wanted, 0);
        if (got < 0) return failed("a file cannot be read", path, errno);
        bytes.resize(static_cast<std::size_t>(got));
        if (bytes.starts_with(container_beginning)) return container_met("no netCDF file", path);
        auto decoded = decode(bytes, path);
        if (!decoded) return decoded.error();
        if (decoded.value().bytes > 0) return std::move(decoded.value().header);
        if (bytes.size() < wanted)
            return Error{"the header of a netCDF file is cut off", path + ": after " + std::to_string(got) + " bytes",
                         "the file was truncated: take a copy of it"};
    }
}

/// The headers of all files.
struct Parts {
    Logical logical;
    Header master;
    std::vector<Header> subfiles;
    std::vector<std::int64_t> subfile_bytes;  ///< their lengths; -1: it cannot be opened
};

/// `problems`: of subfiles, whose headers are not to be used then.
Result<Parts> read_parts(const std::string& path, std::vector<Error>& problems) {
    auto master = read_master(path);
    if (!master) return master.error();
    if (!is_master(master.value()))
        return Error{"no arrays of this netCDF file lie in subfiles", path, "there is nothing to put together"};
    auto logical = logical_of(master.value(), path);
    if (!logical) return logical.error();
    Parts parts{logical.take(), master.take(), {}, {}};
    for (std::int64_t number = 0; number < parts.logical.subfiles; ++number) {
        const std::string name = subfile_path(parts.logical, path, number);
        const auto file = open_to_read(name, Role::subfile);
        auto header = file ? header_in(file.value()) : Result<Header>(file.error());
        parts.subfile_bytes.push_back(file ? file.value().bytes() : -1);
        auto problem =
            header ? check_subfile(parts.logical, header.value(), number, name) : std::optional<Error>(header.error());
        if (problem) problems.push_back(std::move(*problem));
        parts.subfiles.push_back(header ? header.take() : Header{});
    }
    parts.logical.header.records = records_of(parts.master, parts.subfiles);
    if (auto problem = check_sizes(parts.logical.header, path)) return *problem;
    return parts;
}

/// Everything but the removal of what is not needed any more.
Result<std::int64_t> write_merged(const std::string& path, const Logical& logical, const Header& master_header,
                                  const std::vector<Header>& headers, const Open& output, bool in_place) {
    std::vector<Open> sources;
    for (std::int64_t number = -1; number < logical.subfiles; ++number) {
        auto source = number < 0 ? open_to_read(path, Role::master)
                                 : open_to_read(subfile_path(logical, path, number), Role::subfile);
        if (!source) return source.error();
        sources.push_back(source.take());
    }
    const std::string header = encode(logical.header);
    if (const int error = output.write(header.data(), header.size(), 0); error != 0)
        return failed("a file cannot be written", output.path(), error);
    Copier copier(output);
    std::optional<Error> problem;
    for_each_copy(logical, master_header, headers, [&](const Copy& copy) {
        problem = copier.copy(sources[static_cast<std::size_t>(copy.subfile + 1)], copy);
        return !problem;
    });
    if (problem) return *problem;
    const std::int64_t length = std::max(std::ssize(header), static_cast<std::ptrdiff_t>(copier.end()));
    if (::ftruncate(output.fd(), length) != 0 || ::fsync(output.fd()) != 0)
        return failed("a file cannot be written", output.path(), errno);
    guarded::FoundAccess found = guarded::access_of(sources.front().fd());
    if (!in_place) found.access.owner = ::geteuid();  // a copy is its maker's
    const int error = found.error != 0 ? found.error : guarded::give_access(output.fd(), found.access);
    if (error != 0) return failed("a file cannot have its mode", output.path(), error);
    return length;
}

}  // namespace

std::string without_prefix(const std::string& path) {
    const std::size_t colon = path.find(':');
    const std::size_t slash = path.find('/');
    return colon != std::string::npos && colon > 1 && colon < slash ? path.substr(colon + 1) : path;
}

Result<guarded::File> open_named(const std::string& path, int flags) {
    auto file = guarded::follow_path(without_prefix(path), flags);
    if (!file && (file.error().number == ENOENT || file.error().number == EACCES))
        return failed("a file cannot be opened", path, file.error().number);
    return file;
}

Result<guarded::File> open_subfile(const std::string& path, int flags) {
    const std::string bare = without_prefix(path), name = guarded::file_name_of(bare);
    const auto folder = guarded::Folder::follow(guarded::folder_name_of(bare));
    if (!folder) return folder.error();
    struct stat status{};
    if (folder.value().status_of(name, status) != 0 || S_ISLNK(status.st_mode)) return open_named(path, flags);
    guarded::Fault fault = guarded::Fault::none;
    const auto use = (flags & O_ACCMODE) == O_RDONLY ? guarded::Use::read : guarded::Use::write;
    const guarded::Owners& owners = folder.value().owners();
    const int fd = guarded::open_judged<guarded::Direct>(folder.value().descriptor(), name.c_str(), flags, 0, owners,
                                                         use, status, &fault);
    if (fd < 0) return guarded::cannot_use(path, errno, fault, &status, &owners);
    return guarded::File(fd, status, path);
}

int clear_name(const std::string& path) {
    const std::string bare = without_prefix(path);
    const auto folder = guarded::Folder::follow(guarded::folder_name_of(bare));
    if (!folder) return folder.error().number;
    const int error = folder.value().remove(guarded::file_name_of(bare));
    return error == ENOENT ? 0 : error;
}

std::string target_of_subfile(const std::string& path) {
    const auto folder = guarded::Folder::follow(guarded::folder_name_of(path));
    const std::string name = guarded::file_name_of(path);
    struct stat link{}, linked{};
    if (!folder || folder.value().status_of(name, link) != 0 || !S_ISLNK(link.st_mode)) return {};
    const std::string target = folder.value().link_at(name);
    // It is called so, and belongs to whom the link belongs: anybody can make a link to anything.
    constexpr std::size_t digits = 16;
    const std::string last = guarded::file_name_of(target);
    const bool is_made = !target.empty() && target.front() == '/' && last.size() == digits + 1 + name.size() &&
                         last.find_first_not_of("0123456789abcdef") == digits && last.substr(digits) == "." + name;
    if (!is_made) return {};
    // A real path when it was made: a folder that is a link by now is another one.
    const auto place = guarded::Folder::open(guarded::folder_name_of(target));
    const bool is_its = place && place.value().status_of(last, linked) == 0 && S_ISREG(linked.st_mode) &&
                        linked.st_uid == link.st_uid && linked.st_nlink == 1;
    return is_its ? target : std::string();
}

void remove_subfile(const std::string& path) {
    const auto folder = guarded::Folder::follow(guarded::folder_name_of(path));
    if (!folder) return;
    if (const std::string target = target_of_subfile(path); !target.empty()) {
        if (const auto place = guarded::Folder::open(guarded::folder_name_of(target)))
            (void)place.value().remove(guarded::file_name_of(target));
    }
    (void)folder.value().remove(guarded::file_name_of(path));
}

Result<Header> read_header(const std::string& path) {
    const auto file = open_to_read(path, Role::master);
    return file ? header_in(file.value()) : file.error();
}

Result<Header> read_subfile_header(const std::string& path) {
    const auto file = open_to_read(path, Role::subfile);
    return file ? header_in(file.value()) : file.error();
}

Result<Header> read_master(const std::string& path) {
    auto master = read_header(path);
    if (!master || !has_plain_names(master.value())) return master;
    const std::string bare = without_prefix(path);
    const auto names = plain_subfiles(master.value(), bare);
    if (!names) return names.error();
    std::vector<Header> subfiles;
    for (const std::string& name : names.value()) {
        auto header = read_subfile_header(bare.substr(0, bare.rfind('/') + 1) + name);
        if (!header) return header.error();
        subfiles.push_back(header.take());
    }
    return with_own_names(master.value(), subfiles, path);
}

std::vector<std::string> subfiles_of(const std::string& path) {
    const auto header = read_master(path);
    if (!header || !is_master(header.value())) return {};
    const auto logical = logical_of(header.value(), path);
    std::vector<std::string> paths;
    for (std::int64_t number = 0; logical && number < logical.value().subfiles; ++number)
        paths.push_back(subfile_path(logical.value(), without_prefix(path), number));
    return paths;
}

std::int64_t records_of(const Header& master, std::span<const Header> subfiles) {
    std::int64_t records = std::max<std::int64_t>(0, master.records);
    for (const Header& subfile : subfiles) records = std::max(records, subfile.records);
    return records;
}

void for_each_part(const Logical& logical, const Header& master, std::span<const Header> subfiles,
                   FunctionRef<bool(const Copies&)> visit) {
    const std::int64_t master_record = record_bytes(master);
    const std::int64_t record = record_bytes(logical.header);
    for (std::size_t v = 0; v < logical.header.variables.size(); ++v) {
        const Variable& variable = logical.header.variables[v];
        const std::int64_t element = bytes_of(variable.type);
        const auto& ids = variable.dimensions;
        const bool has_records = logical.header.is_record(variable);
        if (!logical.divisions[v]) {
            Copies all;
            all.first = {-1, master.variables[v].begin, variable.begin,
                         element * product(logical.header, ids, has_records ? 1 : 0, ids.size())};
            all.records = has_records ? std::max<std::int64_t>(0, master.records) : 1;
            all.record_from = master_record;
            all.record_to = record;
            if (all.first.bytes > 0 && all.records > 0 && !visit(all)) return;
            continue;
        }
        const Division& division = *logical.divisions[v];
        const auto d = static_cast<std::size_t>(division.dimension);
        const std::int64_t outer = product(logical.header, ids, has_records ? 1 : 0, d);
        const std::int64_t inner = element * product(logical.header, ids, d + 1, ids.size());
        const std::int64_t length = logical.header.dimensions[static_cast<std::size_t>(ids[d])].length;
        for (std::int64_t k = 0; k < logical.subfiles; ++k) {
            const Header& subfile = subfiles[static_cast<std::size_t>(k)];
            const auto& theirs = subfile.variables;
            const auto part = std::find_if(theirs.begin(), theirs.end(),
                                           [&](const Variable& other) { return other.name == variable.name; });
            const std::int64_t first = division.boundaries[static_cast<std::size_t>(k)];
            const std::int64_t run = (division.boundaries[static_cast<std::size_t>(k) + 1] - first) * inner;
            Copies some;
            some.first = {k, part->begin, variable.begin + first * inner, run};
            some.pieces = outer;
            some.piece_from = run;
            some.piece_to = length * inner;
            some.records = has_records ? std::max<std::int64_t>(0, subfile.records) : 1;
            some.record_from = has_records ? record_bytes(subfile) : 0;
            some.record_to = record;
            if (run > 0 && outer > 0 && some.records > 0 && !visit(some)) return;
        }
    }
}

void for_each_copy(const Logical& logical, const Header& master, std::span<const Header> subfiles,
                   FunctionRef<bool(const Copy&)> visit) {
    for_each_part(logical, master, subfiles, [&](const Copies& copies) {
        const std::int64_t count = copies.count();
        for (std::int64_t i = 0; i < count; ++i) {
            if (!visit(copies.at(i))) return false;
        }
        return true;
    });
}

namespace {

/// `description`: as far as the lengths of its parts are known.
std::vector<std::string> unfinished_texts(const std::string& path, const Parts& parts, const Description& description) {
    std::vector<std::string> texts{
        std::string("writing was begun and not ended: ") +
        (is_written_now(path) ? "a job still writes" : "its job has died, and data that it wrote may be missing")};
    for (std::size_t part = 0; part < description.part_paths.size(); ++part) {
        const std::int64_t there = description.part_bytes[part];
        const std::int64_t wanted = end_of_data(part == 0 ? parts.master : parts.subfiles[part - 1]);
        if (there >= 0 && there < wanted)
            texts.push_back(description.part_paths[part] + " has " + std::to_string(there) + " of the " +
                            std::to_string(wanted) + " bytes that its header speaks of");
    }
    return texts;
}

}  // namespace

Result<Description> describe(const std::string& path) {
    std::vector<Error> problems;
    const auto read = read_parts(path, problems);
    if (!read) return read.error();
    const Parts& parts = read.value();
    const Header& header = parts.logical.header;
    Description result;
    result.id = parts.logical.id;
    result.records = header.records;
    result.part_paths = {path};
    for (std::int64_t number = 0; number < parts.logical.subfiles; ++number)
        result.part_paths.push_back(subfile_path(parts.logical, path, number));
    const auto master = open_to_read(path, Role::master);
    result.part_bytes = {master ? master.value().bytes() : -1};
    result.part_bytes.insert(result.part_bytes.end(), parts.subfile_bytes.begin(), parts.subfile_bytes.end());
    for (const Error& problem : problems) result.problems.push_back(problem.message());
    if (is_unfinished(path, parts.master)) {
        result.unfinished = unfinished_texts(path, parts, result);
        result.problems.insert(result.problems.end(), result.unfinished.begin(), result.unfinished.end());
    }
    for (std::size_t v = 0; v < parts.logical.divisions.size(); ++v) {
        if (!parts.logical.divisions[v]) continue;
        const Division& division = *parts.logical.divisions[v];
        const std::int64_t id = division.dimension_ids[static_cast<std::size_t>(division.dimension)];
        result.arrays.push_back(
            {header.variables[v].name, header.dimensions[static_cast<std::size_t>(id)].name, division.boundaries});
    }
    result.bytes = std::ssize(encode(header));
    if (problems.empty())
        for_each_part(parts.logical, parts.master, parts.subfiles, [&](const Copies& copies) {
            const std::int64_t length = result.part_bytes[static_cast<std::size_t>(copies.first.subfile + 1)];
            // The last one of which there is a byte.
            std::int64_t less = 0, more = copies.count();
            while (less < more) {
                const std::int64_t middle = less + (more - less) / 2;
                (copies.at(middle).from < length ? less : more) = copies.at(middle).from < length ? middle + 1 : middle;
            }
            if (less == 0) return true;
            const Copy last = copies.at(less - 1);
            result.bytes = std::max(result.bytes, last.to + std::min(length - last.from, last.bytes));
            return true;
        });
    return result;
}

Result<std::int64_t> merge(const std::string& path, const std::string& output, bool unfinished) {
    std::vector<Error> problems;
    const auto read = read_parts(path, problems);
    if (!read) return read.error();
    if (!problems.empty()) return problems.front();
    const Parts& parts = read.value();
    const auto folder = guarded::Folder::follow(guarded::folder_name_of(output));
    if (!folder) return folder.error();
    const std::string name = guarded::file_name_of(output);
    struct stat there{}, ours{};
    const bool exists = folder.value().status_of(name, there) == 0;
    const bool in_place = exists && guarded::status_of_path(path, ours) == 0 && there.st_ino == ours.st_ino &&
                          there.st_dev == ours.st_dev;
    if (exists && !in_place) return Error{"the output exists", output, "remove it, or name another one"};
    if (in_place && is_unfinished(path, parts.master)) {
        if (is_written_now(path))
            return Error{"the netCDF file was not closed", path, "a job still writes it; wait until it is done"};
        if (!unfinished)
            return Error{"the netCDF file was not closed", path,
                         "the job that wrote it has died (`ioweir check` says more): to keep what is there, name an "
                         "output, or say --unfinished"};
    }
    const std::string draft = name + ".ioweir-merging";
    auto made = folder.value().file(draft, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (!made) return failed("a file cannot be made", folder.value().path_of(draft), made.error().number);
    const Open file(made.take(), folder.value().path_of(draft));
    auto length = write_merged(path, parts.logical, parts.master, parts.subfiles, file, in_place);
    if (const int error = length ? folder.value().rename(draft, name) : 0; error != 0)
        length = failed("a file cannot be renamed", file.path(), error);
    if (!length)
        (void)folder.value().remove(draft);
    else if (in_place) {
        for (std::int64_t number = 0; number < parts.logical.subfiles; ++number)
            remove_subfile(subfile_path(parts.logical, path, number));
        remove_mark(path);
    }
    return length;
}

}  // namespace ioweir::ncsub
