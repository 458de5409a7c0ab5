#include "container/stub.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/checked_text.hpp"
#include "base/container_met.hpp"

namespace ioweir::container {
namespace {

constexpr std::size_t id_digits = 32;
constexpr std::int64_t most_files = 1'000'000;

bool is_id(std::string_view text) {
    return text.size() == id_digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Error damaged(const std::string& why) {
    return {"a damaged ioweir stub", why,
            "restore the file from a copy; its bytes are in a directory .ioweir-ID beside it"};
}

static_assert(stub_beginning == container_beginning);

std::string first_line(int version) { return std::string(stub_beginning) + std::to_string(version) + "\n"; }

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

Result<Stub> new_stub(Shape shape) {
    unsigned char random[id_digits / 2];
    if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
        return Error{"no random numbers for a container's name", std::strerror(errno), "getrandom(2) must work"};
    constexpr char digits[] = "0123456789abcdef";
    Stub stub;
    stub.shape = shape;
    for (const unsigned char byte : random) {
        stub.id += digits[byte >> 4];
        stub.id += digits[byte & 15];
    }
    return stub;
}

std::string to_text(const Stub& stub) {
    const std::string first = first_line(stub.version);
    const std::string facts = "id " + stub.id + "\nmapping " + to_text(stub.shape) + "\n";
    return (stub.version >= 3 ? with_check(first + facts) : first + with_check(facts)) +
           "\nThis file stands for one whose bytes are in the directory .ioweir-" + stub.id +
           "\nbeside it. Programs under ioweir read it through MPI-IO;\nto make it an ordinary file: ioweir merge "
           "FILE\n";
}

bool looks_like_stub(std::string_view beginning) { return beginning.starts_with(stub_beginning); }

Result<Stub> parse_stub(std::string_view text) {
    if (!looks_like_stub(text)) return damaged("its first line is missing");
    Stub stub;
    for (stub.version = newest_version; !text.starts_with(first_line(stub.version)); --stub.version) {
        if (stub.version > oldest_version) continue;
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) return damaged("its first line is cut");
        const std::string version(text.substr(stub_beginning.size(), end - stub_beginning.size()));
        return Error{"an ioweir container of another version", version, "this ioweir knows versions 2 and 3"};
    }
    const auto id = value_of(text, "id");
    if (!id || !is_id(*id)) return damaged("no id of 32 hexadecimal digits");
    stub.id = *id;
    const auto mapping = value_of(text, "mapping");
    const auto shape = mapping ? parse_shape(*mapping) : std::nullopt;
    if (!shape) return damaged("no mapping that this ioweir knows");
    stub.shape = *shape;
    if (text != to_text(stub)) return damaged("its text is not as ioweir writes it");
    return stub;
}

std::string directory_of(const std::string& stub_path, const std::string& id) {
    const std::size_t slash = stub_path.rfind('/');
    const std::string beside = slash == std::string::npos ? "" : stub_path.substr(0, slash + 1);
    return beside + ".ioweir-" + id;
}

Result<std::optional<Stub>> read_stub(int descriptor, const std::string& path) {
    struct stat info{};
    if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0 ||
        info.st_size > most_stub_bytes) {
        return std::optional<Stub>();
    }
    char text[most_stub_bytes];
    ssize_t length = 0;
    do {
        length = ::pread(descriptor, text, sizeof text, 0);
    } while (length < 0 && errno == EINTR);
    if (length < 0) return Error{"cannot read", path, std::strerror(errno)};
    const std::string_view all(text, static_cast<std::size_t>(length));
    if (!looks_like_stub(all)) return std::optional<Stub>();
    auto stub = parse_stub(all);
    if (!stub) return Error{stub.error().what, path + ": " + stub.error().value, stub.error().remedy};
    stub.value().owner = info.st_uid;
    return std::optional<Stub>(stub.take());
}

Result<std::optional<Stub>> read_stub(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0 ||
        info.st_size > most_stub_bytes) {
        return std::optional<Stub>();
    }
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // it may be a pipe by now
    if (descriptor < 0) return std::optional<Stub>();  // whoever may not read it meets the same error at its own open
    auto stub = read_stub(descriptor, path);
    ::close(descriptor);
    return stub;
}

}  // namespace ioweir::container
