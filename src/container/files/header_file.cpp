#include "container/files/header_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/checked_text.hpp"
#include "base/container_met.hpp"
#include "base/guarded_files.hpp"

namespace ioweir::container {
namespace {

constexpr std::size_t id_digits = 32;
constexpr std::int64_t most_files = 1'000'000;

bool is_id(std::string_view text) {
    return text.size() == id_digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Error damaged_header(const std::string& why) {
    return {"a damaged ioweir header file", why,
            "restore the file from a copy; its bytes are in a directory .ioweir-ID beside it"};
}

static_assert(header_file_beginning == container_beginning);

std::string first_line(int version) { return std::string(header_file_beginning) + std::to_string(version) + "\n"; }

/// What follows `key` and a blank on a line of its own.
std::optional<std::string_view> value_of(std::string_view text, std::string_view key) {
    const std::string wanted = "\n" + std::string(key) + " ";
    const std::size_t at = text.find(wanted);
    if (at == std::string_view::npos) return std::nullopt;
    const std::size_t begin = at + wanted.size();
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return std::nullopt;
    return text.substr(begin, end - begin);
}

}  // namespace

std::string to_text(const Shape& shape) {
    if (shape.kind == Shape::Kind::log) return "log";
    if (shape.kind == Shape::Kind::grouped) return "grouped:" + std::to_string(shape.count);
    return "subfiles:" + std::to_string(shape.count) + " stripe " + std::to_string(shape.stripe_bytes);
}

std::optional<Shape> parse_shape(std::string_view text) {
    Shape shape;
    const std::string copy(text);
    long long count = 0, stripe = 0;
    if (text == "log") {
        shape = {0, Shape::Kind::log};
    } else if (std::sscanf(copy.c_str(), "grouped:%lld", &count) == 1) {
        shape = {count, Shape::Kind::grouped};
    } else if (std::sscanf(copy.c_str(), "subfiles:%lld stripe %lld", &count, &stripe) == 2) {
        shape = {count, Shape::Kind::subfiles, stripe};
        if (stripe < 1) return std::nullopt;
    }
    if (to_text(shape) != text) return std::nullopt;
    if (shape.kind != Shape::Kind::log && (shape.count < 1 || shape.count > most_files)) return std::nullopt;
    return shape;
}

Result<HeaderFile> new_header_file(Shape shape) {
    unsigned char random[id_digits / 2];
    if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
        return Error{"no random numbers for a container's name", std::strerror(errno), "getrandom(2) must work"};
    constexpr char digits[] = "0123456789abcdef";
    HeaderFile header_file;
    header_file.shape = shape;
    for (const unsigned char byte : random) {
        header_file.id += digits[byte >> 4];
        header_file.id += digits[byte & 15];
    }
    return header_file;
}

std::string to_text(const HeaderFile& header_file) {
    const std::string first = first_line(header_file.version);
    const std::string facts = "id " + header_file.id + "\nmapping " + to_text(header_file.shape) + "\n";
    return (header_file.version >= 3 ? with_check(first + facts) : first + with_check(facts)) +
           "\nThis file stands for one whose bytes are in the directory .ioweir-" + header_file.id +
           "\nbeside it. Programs under ioweir read it through MPI-IO;\nto make it an ordinary file: ioweir merge "
           "FILE\n";
}

bool looks_like_header_file(std::string_view beginning) { return beginning.starts_with(header_file_beginning); }

Result<HeaderFile> parse_header_file(std::string_view text) {
    if (!looks_like_header_file(text)) return damaged_header("its first line is missing");
    HeaderFile header_file;
    for (header_file.version = newest_version; !text.starts_with(first_line(header_file.version));
         --header_file.version) {
        if (header_file.version > oldest_version) continue;
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) return damaged_header("its first line is cut");
        const std::string version(text.substr(header_file_beginning.size(), end - header_file_beginning.size()));
        return Error{"an ioweir container of another version", version, "this ioweir knows versions 2 and 3"};
    }
    const auto id = value_of(text, "id");
    if (!id || !is_id(*id)) return damaged_header("no id of 32 hexadecimal digits");
    header_file.id = *id;
    const auto mapping = value_of(text, "mapping");
    const auto shape = mapping ? parse_shape(*mapping) : std::nullopt;
    if (!shape) return damaged_header("no mapping that this ioweir knows");
    header_file.shape = *shape;
    if (text != to_text(header_file)) return damaged_header("its text is not as ioweir writes it");
    return header_file;
}

std::string without_link(const std::string& path) {
    struct stat own{};
    std::array<char, PATH_MAX> real{};
    if (guarded::status_of_path(path, own) != 0 || !S_ISLNK(own.st_mode)) return path;
    return ::realpath(path.c_str(), real.data()) != nullptr ? std::string(real.data()) : path;
}

bool is_only_name(const std::string& path) {
    struct stat own{};
    return guarded::status_of_path(path, own) == 0 && S_ISREG(own.st_mode) && own.st_nlink == 1;
}

std::string directory_of(const std::string& header_file_path, const std::string& id) {
    const std::string path = without_link(header_file_path);
    const std::size_t slash = path.rfind('/');
    const std::string beside = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    return beside + ".ioweir-" + id;
}

Result<std::optional<HeaderFile>> read_header_file(int descriptor, const std::string& path) {
    struct stat info{};
    if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0 ||
        info.st_size > most_header_file_bytes) {
        return std::optional<HeaderFile>();
    }
    char text[most_header_file_bytes];
    ssize_t length = 0;
    do {
        length = ::pread(descriptor, text, sizeof text, 0);
    } while (length < 0 && errno == EINTR);
    if (length < 0) return Error{"cannot read", path, std::strerror(errno)};
    const std::string_view all(text, static_cast<std::size_t>(length));
    if (!looks_like_header_file(all)) return std::optional<HeaderFile>();
    auto header_file = parse_header_file(all);
    if (!header_file)
        return Error{header_file.error().what, path + ": " + header_file.error().value, header_file.error().remedy};
    header_file.value().owner = info.st_uid;
    return std::optional<HeaderFile>(header_file.take());
}

Result<std::optional<HeaderFile>> read_header_file(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0 ||
        info.st_size > most_header_file_bytes) {
        return std::optional<HeaderFile>();
    }
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // it may be a pipe by now
    if (descriptor < 0)
        return std::optional<HeaderFile>();  // whoever may not read it meets the same error at its own open
    auto header_file = read_header_file(descriptor, path);
    ::close(descriptor);
    return header_file;
}

}  // namespace ioweir::container
