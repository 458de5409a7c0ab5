#include "container/files/subfiles.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/checked_text.hpp"
#include "container/files/access.hpp"
#include "container/files/data_header.hpp"
#include "container/sharing/generations.hpp"

namespace ioweir::container {
namespace {

std::string header_text(const Directory& directory, std::int64_t number) {
    std::string text = with_check("ioweir subfile 1\nid " + directory.id() + "\nnumber " + std::to_string(number) +
                                  " of " + std::to_string(directory.shape.count) + "\nstripe " +
                                  std::to_string(directory.shape.stripe_bytes) + "\n");
    text.resize(static_cast<std::size_t>(subfile_header_bytes), '\0');
    return text;
}

/// Before the lines of `places` and `sizes`: version 2 did not say whose they are.
std::string first_lines(const Directory& directory, const char* what, int version) {
    const std::string first = "ioweir " + std::string(what) + " " + std::to_string(version) + "\n";
    return directory.version < 3 ? first : first + "id " + directory.id() + "\n";
}

/// The lines that come after these, where they are right. `text`: with its check.
std::optional<std::vector<std::string>> lines_after(const std::string& first, const std::string& text) {
    auto lines = lines_of(text);
    if (!lines || !text.starts_with(first)) return std::nullopt;
    lines->erase(lines->begin(), lines->begin() + std::count(first.begin(), first.end(), '\n'));
    return lines;
}

/// In version 3 there is one kind of `places`.
int several_version(const Directory& directory) { return directory.version < 3 ? 2 : 3; }
int sizes_version(const Directory& directory) { return directory.version < 3 ? 1 : 2; }

constexpr const char* places_name = "places";
constexpr const char* sizes_name = "sizes";
/// Of their texts: a path for each of a million subfiles; a number for each.
constexpr std::int64_t most_places_bytes = std::int64_t{1} << 27, most_sizes_bytes = std::int64_t{1} << 24;

std::string places_file(const Directory& directory) { return directory.path_of(places_name); }
std::string sizes_file(const Directory& directory) { return directory.path_of(sizes_name); }

Result<std::string> read_text(const Directory& directory, const std::string& name, std::int64_t most) {
    const auto folder = directory.opened();
    if (!folder) return missing(directory.path, folder.error());
    auto text = folder.value()->read(name, most);
    if (!text) return missing(directory.path_of(name), text.error());
    return text;
}

Error damaged_part(const std::string& path) {
    return {"a damaged part of an ioweir container", path + ": it is not as ioweir writes it",
            "restore it from a copy"};
}

/// `place` is a directory, or empty for the container's own.
std::string subfile_in(const Directory& directory, const std::string& place, std::int64_t number) {
    const std::string file = "subfile." + std::to_string(number);
    if (place.empty()) return directory.path_of(file);
    return place + "/" + guarded::file_name_of(directory.path) + "." + file;
}

/// Where a subfile lies: as subfile_in() takes it.
std::string place_of(const Directory& directory, const std::string& subfile) {
    const std::string place = guarded::folder_name_of(subfile);
    return place == directory.path ? std::string() : place;
}

/// The folder of a subfile. Of what lies on a target, only what whoever owns the container has made is believed, or those whom he lets
/// write.
Result<guarded::Folder> folder_of(const Directory& directory, const guarded::Folder& own, const std::string& subfile) {
    auto folder = guarded::Folder::follow(guarded::folder_name_of(subfile));
    if (folder)
        folder.value().believe(place_of(directory, subfile).empty() ? own.owners() : own.owners().without_user());
    return folder;
}

Subfiles subfiles_in(const Directory& directory, const std::vector<std::string>& places) {
    Subfiles subfiles{{}, {{0, 0, directory.shape.count}}, directory.shape.stripe_bytes};
    for (std::int64_t number = 0; number < directory.shape.count; ++number) {
        const auto at = static_cast<std::size_t>(number);
        subfiles.paths.push_back(subfile_in(directory, places.empty() ? "" : places[at % places.size()], number));
    }
    return subfiles;
}

/// `places` of several divisions.
std::string text_of(const Directory& directory, const Subfiles& subfiles) {
    std::string text = first_lines(directory, "places", several_version(directory));
    for (const Division& division : subfiles.divisions) {
        text += "from " + std::to_string(division.first_stripe) + "\n";
        for (std::int64_t i = 0; i < division.count; ++i) {
            const std::string place = place_of(directory, subfiles.path(division.first_file + i));
            text += (place.empty() ? "." : place) + "\n";
        }
    }
    return with_check(text);
}

/// The same read back, or nothing where it is not as text_of() has it. `lines` without the first.
std::optional<Subfiles> divided(const Directory& directory, const std::vector<std::string>& lines) {
    Subfiles subfiles{{}, {}, directory.shape.stripe_bytes};
    for (const std::string& line : lines) {
        if (line.starts_with("from ")) {
            std::int64_t first = -1;
            const auto [end, code] = std::from_chars(line.data() + 5, line.data() + line.size(), first);
            const bool rises = subfiles.divisions.empty() ? first == 0 : first > subfiles.divisions.back().first_stripe;
            if (code != std::errc{} || end != line.data() + line.size() || !rises) return std::nullopt;
            if (first > INT64_MAX / directory.shape.stripe_bytes) return std::nullopt;
            if (!subfiles.divisions.empty() && subfiles.divisions.back().count == 0) return std::nullopt;
            subfiles.divisions.push_back({first, subfiles.count(), 0});
        } else {
            if (subfiles.divisions.empty() || (line != "." && !line.starts_with('/'))) return std::nullopt;
            subfiles.paths.push_back(subfile_in(directory, line == "." ? "" : line, subfiles.count()));
            ++subfiles.divisions.back().count;
        }
    }
    const bool good = !subfiles.divisions.empty() && subfiles.divisions.back().count > 0 &&
                      subfiles.divisions.front().count == directory.shape.count;
    return good ? std::optional(std::move(subfiles)) : std::nullopt;
}

/// `places` of new subfiles.
std::string new_places(const Directory& directory, const std::vector<std::string>& places, const Subfiles& subfiles) {
    if (directory.version >= 3) return text_of(directory, subfiles);
    std::string text = first_lines(directory, "places", 1);
    for (const std::string& place : places) text += place + "\n";
    return with_check(text);
}

/// An errno value; none is left then.
int make_subfile(const Directory& directory, const std::string& path, std::int64_t number, const SubfileMaker& make) {
    const auto own = directory.opened();
    if (!own) return own.error().number;
    const auto folder = folder_of(directory, *own.value(), path);
    if (!folder) return folder.error().number;
    const std::string name = guarded::file_name_of(path);
    guarded::File file;
    if (make) {
        const storage::Opened made = make(number, path);
        if (made.error != 0) return made.error;
        file = guarded::File(made.descriptor, {}, path);
    } else {
        auto made = folder.value().file(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (!made) return made.error().number;
        file = made.take();
    }
    int error = begin_part(directory, file.descriptor());
    if (error == 0) error = file.write_all(header_text(directory, number));
    if (const int at_close = file.close(); error == 0) error = at_close;
    if (error != 0) (void)folder.value().remove(name);
    return error;
}

/// An errno value; what is not there is gone.
int remove_subfile(const Directory& directory, const std::string& path, std::int64_t number) {
    const auto own = directory.opened();
    if (!own) return own.error().number;
    const auto folder = folder_of(directory, *own.value(), path);
    if (!folder) return folder.error().number == ENOENT ? 0 : folder.error().number;
    const std::string name = guarded::file_name_of(path);
    const auto file = folder.value().file(name);
    if (!file) return file.error().number == ENOENT ? 0 : file.error().number;
    if (!may_be_removed(file.value(), header_text(directory, number))) return EPERM;
    return folder.value().remove(name);
}

}  // namespace

Spot spot_of(const Shape& shape, std::int64_t offset) {
    const std::int64_t stripe = offset / shape.stripe_bytes, within = offset % shape.stripe_bytes;
    return {stripe % shape.count, stripe / shape.count * shape.stripe_bytes + within, shape.stripe_bytes - within};
}

std::int64_t bytes_in(const Shape& shape, std::int64_t file, std::int64_t bytes) {
    const std::int64_t whole = bytes / shape.stripe_bytes, rest = bytes % shape.stripe_bytes;
    const std::int64_t stripes = whole > file ? (whole - file + shape.count - 1) / shape.count : 0;
    return stripes * shape.stripe_bytes + (whole % shape.count == file ? rest : 0);
}

std::int64_t reach_of(const Shape& shape, std::int64_t file, std::int64_t bytes) {
    if (bytes <= 0) return 0;
    const std::int64_t last = bytes - 1;
    std::int64_t reach = 0;
    const bool is_too_far = __builtin_mul_overflow(last / shape.stripe_bytes, shape.count, &reach) ||
                            __builtin_add_overflow(reach, file, &reach) ||
                            __builtin_mul_overflow(reach, shape.stripe_bytes, &reach) ||
                            __builtin_add_overflow(reach, last % shape.stripe_bytes + 1, &reach);
    return is_too_far ? INT64_MAX : reach;
}

Subfiles::Part Subfiles::part(std::size_t division) const {
    const Division& one = divisions[division];
    const bool last = division + 1 == divisions.size();
    return {{one.count, Shape::Kind::subfiles, stripe_bytes},
            one.first_stripe * stripe_bytes,
            last ? INT64_MAX : divisions[division + 1].first_stripe * stripe_bytes,
            one.first_file};
}

Subfiles::Part Subfiles::part_of(std::int64_t file) const {
    std::size_t division = divisions.size() - 1;
    while (file < divisions[division].first_file) --division;
    return part(division);
}

Spot Subfiles::spot_of(std::int64_t offset) const {
    std::size_t division = divisions.size() - 1;
    while (offset / stripe_bytes < divisions[division].first_stripe) --division;
    const Part here = part(division);
    Spot spot = container::spot_of(here.shape, offset - here.begin);
    spot.file += here.first_file;
    return spot;
}

std::int64_t Subfiles::bytes_in(std::int64_t file, std::int64_t bytes) const {
    const Part here = part_of(file);
    const std::int64_t local = std::clamp(bytes, here.begin, here.end) - here.begin;
    return container::bytes_in(here.shape, file - here.first_file, local);
}

std::int64_t Subfiles::reach_of(std::int64_t file, std::int64_t bytes) const {
    if (bytes <= 0) return 0;
    const Part here = part_of(file);
    std::int64_t reach = 0;
    return __builtin_add_overflow(here.begin, container::reach_of(here.shape, file - here.first_file, bytes), &reach)
               ? INT64_MAX
               : reach;
}

Result<Subfiles> make_subfiles(const Directory& directory, const std::vector<std::string>& places,
                               const SubfileMaker& make) {
    std::vector<std::string> absolute;
    for (const std::string& place : places) {
        std::array<char, PATH_MAX> real{};
        const bool there = ::realpath(place.c_str(), real.data()) != nullptr && guarded::Folder::follow(real.data());
        if (!there || std::strchr(real.data(), '\n') != nullptr)
            return Error{"not a directory for subfiles", place,
                         "name directories that are there, in the plan's targets"};
        absolute.emplace_back(real.data());
    }
    const auto folder = directory.opened();
    if (!folder) return missing(directory.path, folder.error());
    Subfiles subfiles = subfiles_in(directory, absolute);
    if (const int error = folder.value()->write_new(places_name, new_places(directory, absolute, subfiles)); error != 0)
        return missing(places_file(directory), error);
    for (std::int64_t number = 0; number < directory.shape.count; ++number) {
        const int error = make_subfile(directory, subfiles.path(number), number, make);
        if (error == 0) continue;
        for (std::int64_t made = 0; made < number; ++made) (void)remove_subfile(directory, subfiles.path(made), made);
        (void)folder.value()->remove(places_name);
        return Error{"a subfile cannot be made", subfiles.path(number) + ": " + std::strerror(error),
                     "the directories of the plan's targets must be writable and have room"};
    }
    // From now on: one that is not there was removed.
    if (const int error = keep_sizes(directory, subfiles, 0); error != 0) {
        (void)remove_subfiles(directory);
        return missing(sizes_file(directory), error);
    }
    // Bytes that are synced later are found by it only.
    int error = 0;
    if (const auto text = folder.value()->file(places_name); !text)
        error = text.error().number;
    else if (::fsync(text.value().descriptor()) != 0)
        error = errno;
    if (error == 0 || error == EINVAL) error = folder.value()->make_durable();  // not every file system has that
    if (error == 0) return subfiles;
    (void)remove_subfiles(directory);
    return missing(places_file(directory), error);
}

Result<Subfiles> read_subfiles(const Directory& directory) {
    const auto text = read_text(directory, places_name, most_places_bytes);
    if (!text) return text.error();
    if (directory.version < 3) {
        if (const auto places = lines_after(first_lines(directory, "places", 1), text.value()))
            return subfiles_in(directory, *places);
    }
    const auto lines = lines_after(first_lines(directory, "places", several_version(directory)), text.value());
    auto read = lines ? divided(directory, *lines) : std::nullopt;
    if (!read) return damaged_part(places_file(directory));
    return std::move(*read);
}

Result<Subfiles> redivide(const Directory& directory, const Subfiles& now, std::int64_t first_stripe,
                          const std::vector<std::int64_t>& files, const SubfileMaker& make) {
    Subfiles next = now;
    if (first_stripe <= now.divisions.back().first_stripe)
        return Error{"the stripes that are still to be written cannot be dealt anew",
                     "from stripe " + std::to_string(first_stripe), "nothing was written since they were dealt"};
    next.divisions.push_back({first_stripe, now.count(), std::ssize(files)});
    const auto folder = directory.opened();
    if (!folder) return missing(directory.path, folder.error());
    std::int64_t made = 0;
    int error = 0;
    for (const std::int64_t file : files) {
        next.paths.push_back(subfile_in(directory, place_of(directory, now.path(file)), next.count()));
        error = make_subfile(directory, next.paths.back(), next.count() - 1, make);
        if (error != 0) break;
        ++made;
    }
    std::string where = next.paths.back();
    if (error == 0) {
        where = places_file(directory);
        error = folder.value()->replace(places_name, std::string(places_name) + ".next", text_of(directory, next), 0666,
                                        true);
    }
    if (error == 0) {
        // Before bytes that only the new text finds; a file system that cannot do it has said so before.
        (void)folder.value()->make_durable();
        return next;
    }
    for (std::int64_t i = 0; i < made; ++i)
        (void)remove_subfile(directory, next.path(now.count() + i), now.count() + i);
    return Error{"the stripes that are still to be written cannot be dealt anew", where + ": " + std::strerror(error),
                 "they go on as before"};
}

SubfileMaker make_beside(const Subfiles& now, const std::vector<std::int64_t>& files, storage::Targets& targets) {
    return [&](std::int64_t number, const std::string& path) -> storage::Opened {
        const std::int64_t like = files[static_cast<std::size_t>(number - now.count())];
        const auto placement = targets.placement_of(now.path(like));
        if (!placement) return {-1, EIO};
        return targets.create(path, placement.value(), O_WRONLY, 0600);
    };
}

std::uint64_t places_mark(const Directory& directory) {
    struct stat info{};
    const auto folder = directory.opened();
    if (!folder || folder.value()->status_of(places_name, info) != 0) return 0;
    return info.st_ino * 1'000'003 + static_cast<std::uint64_t>(info.st_size) + 1;
}

int remove_subfiles(const Directory& directory, bool elsewhere) {
    const auto folder = directory.opened();
    if (!folder) return folder.error().number;
    int first = 0;
    const auto note = [&](int error) {
        if (error != 0 && error != ENOENT && first == 0) first = error;
    };
    if (const auto subfiles = read_subfiles(directory)) {
        for (std::int64_t number = 0; number < subfiles.value().count(); ++number)
            if (elsewhere || place_of(directory, subfiles.value().path(number)).empty())
                note(remove_subfile(directory, subfiles.value().path(number), number));
    }
    note(folder.value()->remove(sizes_name));
    for (const std::string& name : folder.value()->names().names) {
        if (number_after(name, "sizes.") || name == "places.next") note(folder.value()->remove(name));
    }
    note(folder.value()->remove(places_name));
    return first;
}

Result<guarded::File> open_subfile(const Directory& directory, const Subfiles& subfiles, std::int64_t number,
                                   int flags) {
    const auto folder = directory.opened();
    if (!folder) return folder.error();
    const std::string& path = subfiles.path(number);
    if (place_of(directory, path).empty()) return folder.value()->file(guarded::file_name_of(path), flags);
    return guarded::open_path(path, folder.value()->owners().without_user(), flags);
}

std::string why_not_subfile(const Directory& directory, int descriptor, std::int64_t number) {
    return why_not_header(descriptor, header_text(directory, number), "subfile",
                          [&](const std::string& text) -> OtherPart {
                              std::int64_t other = -1;
                              const std::size_t at = text.find("\nnumber ");
                              if (at != std::string::npos)
                                  std::from_chars(text.data() + at + 8, text.data() + text.size(), other);
                              if (other < 0) return {};
                              return {header_text(directory, other), "subfile " + std::to_string(other)};
                          });
}

namespace {

/// How long a subfile is; nothing of it is read. An errno value.
int length_of(const guarded::Folder& folder, const Directory& directory, const std::string& path, std::int64_t& bytes) {
    struct stat info{};
    const int error = place_of(directory, path).empty() ? folder.status_of(guarded::file_name_of(path), info)
                                                        : guarded::status_of_path(path, info);
    if (error != 0) return error;
    if (!S_ISREG(info.st_mode)) return S_ISLNK(info.st_mode) ? ELOOP : S_ISDIR(info.st_mode) ? EISDIR : ENXIO;
    bytes = info.st_size;
    return 0;
}

}  // namespace

Result<std::int64_t> length(const Directory& directory, const Subfiles& subfiles) {
    return directory.look([&](const guarded::Folder& folder) -> Result<std::int64_t> {
        std::int64_t longest = 0;
        for (std::int64_t number = 0; number < subfiles.count(); ++number) {
            std::int64_t bytes = 0;
            const int error = length_of(folder, directory, subfiles.path(number), bytes);
            if (error != 0) return missing(subfiles.path(number), error);
            longest = std::max(longest, subfiles.reach_of(number, bytes - subfile_header_bytes));
            if (longest == INT64_MAX)
                return Error{"a damaged part of an ioweir container",
                             subfiles.path(number) + ": with its bytes the file would be longer than files can be",
                             "was it written by something else?", EFBIG};
        }
        return longest;
    });
}

int set_length(const Directory& directory, const Subfiles& subfiles, std::int64_t bytes) {
    const auto folder = directory.opened();
    if (!folder) return folder.error().number;
    const std::int64_t last = bytes > 0 ? subfiles.spot_of(bytes - 1).file : -1;
    for (std::int64_t number = 0; number < subfiles.count(); ++number) {
        const std::int64_t wanted = subfile_header_bytes + subfiles.bytes_in(number, bytes);
        std::int64_t there = 0;
        if (const int error = length_of(*folder.value(), directory, subfiles.path(number), there); error != 0)
            return error;
        if (there <= wanted && (number != last || there == wanted)) continue;
        const auto file = open_subfile(directory, subfiles, number, O_WRONLY);
        if (!file) return file.error().number;
        if (::ftruncate(file.value().descriptor(), wanted) != 0) return errno;
    }
    return 0;
}

int keep_sizes(const Directory& directory, const Subfiles& subfiles, std::uint32_t generation) {
    const auto folder = directory.opened();
    if (!folder) return folder.error().number;
    std::string text = first_lines(directory, "sizes", sizes_version(directory));
    for (const std::string& path : subfiles.paths) {
        std::int64_t bytes = 0;
        if (const int error = length_of(*folder.value(), directory, path, bytes); error != 0) return error;
        text += std::to_string(bytes) + "\n";
    }
    // Several may end at once.
    const std::string draft = std::string(sizes_name) + "." + std::to_string(generation);
    return folder.value()->replace(sizes_name, draft, with_check(text));
}

int forget_sizes(const Directory& directory) {
    const auto folder = directory.opened();
    const int error = folder ? folder.value()->remove(sizes_name) : folder.error().number;
    return error == ENOENT ? 0 : error;
}

namespace {

/// How long each was when writing was last ended; 0 for those that were not there then. A problem where that is not known.
std::vector<std::int64_t> kept_sizes(const Directory& directory, const Subfiles& subfiles, bool needed,
                                     std::vector<std::string>& problems) {
    std::vector<std::int64_t> sizes(subfiles.paths.size(), 0);
    const std::string path = sizes_file(directory);
    const auto text = read_text(directory, sizes_name, most_sizes_bytes);
    if (!text && text.error().number == ENOENT) {
        if (needed)
            problems.push_back(path + " is not there, which says how long the subfiles were when writing was ended");
        return sizes;
    }
    if (!text && text.error().number != 0) {
        problems.push_back(text.error().message());
        return sizes;
    }
    const auto lines =
        text ? lines_after(first_lines(directory, "sizes", sizes_version(directory)), text.value()) : std::nullopt;
    // A job that has died may have added subfiles after these were written down.
    if (!lines || lines->size() > sizes.size() || std::ssize(*lines) < directory.shape.count) {
        problems.push_back(damaged_part(path).message());
        return sizes;
    }
    for (std::size_t i = 0; i < lines->size(); ++i) {
        const std::string& digits = (*lines)[i];
        std::from_chars(digits.data(), digits.data() + digits.size(), sizes[i]);
    }
    return sizes;
}

/// While these are the generations.
std::vector<std::string> problems_now(const Directory& directory, const Subfiles& subfiles,
                                      const Generations& generations, std::uint32_t own) {
    std::vector<std::string> problems;
    std::vector<std::int64_t> sizes(subfiles.paths.size(), 0);
    // Before version 3 none were there of a container that could not be opened after it was made.
    const bool needed = generations.ended && directory.version >= 3;
    if (generations.only(own)) sizes = kept_sizes(directory, subfiles, needed, problems);
    bool has_bytes = false;
    for (std::int64_t number = 0; number < subfiles.count(); ++number) {
        const std::string& path = subfiles.path(number);
        const auto file = open_subfile(directory, subfiles, number);
        if (!file) {
            problems.push_back(missing(path, file.error()).value);
            continue;
        }
        const std::int64_t bytes = file.value().bytes(), kept = sizes[static_cast<std::size_t>(number)];
        const std::string why = why_not_subfile(directory, file.value().descriptor(), number);
        if (!why.empty())
            problems.push_back(path + ": " + why);
        else if (bytes < kept)
            problems.push_back(path + ": it has " + std::to_string(bytes) + " bytes and had " + std::to_string(kept) +
                               " when it was last closed");
        has_bytes = has_bytes || bytes > subfile_header_bytes;
    }
    const bool written = generations.ended || !generations.only(own) || !generations.replaced.empty();
    if (has_bytes && !written)
        problems.push_back(
            directory.path +
            ": its subfiles have bytes, and nothing says that anybody has begun to write them or is done "
            "(no open.G, no closed.G)");
    return problems;
}

}  // namespace

std::vector<std::string> problems_of(const Directory& directory, const Subfiles& subfiles, std::uint32_t own) {
    for (int attempt = 0;; ++attempt) {
        const auto before = generations_in(directory);
        if (!before) return {before.error().message()};
        auto problems = problems_now(directory, subfiles, before.value(), own);
        if (problems.empty() || attempt == 10) return problems;
        // Another job or handle may have begun or ended meanwhile, and made subfiles shorter.
        const auto after = generations_in(directory);
        if (after && after.value() == before.value()) return problems;
    }
}

}  // namespace ioweir::container
