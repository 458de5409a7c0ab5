// Fuzzes the texts of containers without a file: header files, shapes, what `about` says, and whatever lines are sealed. What is read can be written, and is
// then as it was. As files of whole containers: parts_fuzz.cpp.
// An input: a byte (0: a header file, 1: a shape, 2: about, 3: sealed lines; 8: the check that a header file or lines need is made), and the text.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/checked_text.hpp"
#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "container/files/header_file.hpp"
#include "container/files/origin.hpp"

namespace ioweir {
namespace {

using container::HeaderFile;
using container::Shape;

void check_shape(const Shape& shape) {
    require(shape.kind == Shape::Kind::log || shape.count >= 1, "the number of files");
    require(shape.kind != Shape::Kind::subfiles || shape.stripe_bytes >= 1, "the bytes of a stripe");
}

void read_header_file(const std::string& text) {
    require(!container::looks_like_header_file(text) || text.starts_with(container::header_file_beginning),
            "how a header file begins");
    const auto parsed = container::parse_header_file(text);
    if (!parsed) {
        require(!parsed.error().what.empty(), "an error without words");
        require(parsed.error().message().size() < 1000 + 8 * text.size(), "an error much longer than the text");
        return;
    }
    const HeaderFile& header_file = parsed.value();
    require(container::to_text(header_file) == text, "a header file that is written is as it was");
    require(
        std::ssize(text) <= container::most_header_file_bytes && std::ssize(text) >= container::least_header_file_bytes,
        "the length of a header file");
    require(header_file.id.size() == 32 && header_file.id.find('/') == std::string::npos, "an id that is a name");
    require(header_file.version >= container::oldest_version && header_file.version <= container::newest_version,
            "a version");
    check_shape(header_file.shape);
}

/// The facts before the check are the input's; the rest is as every header file has it.
std::string completed(const std::string& facts) {
    std::string text = container::to_text(HeaderFile{std::string(32, '0'), Shape{2}, container::newest_version});
    const std::size_t begin = text.find("\nid ") + 1, end = text.find("check ");
    const std::size_t id = facts.find("id ");
    if (id != std::string::npos && facts.size() >= id + 35) {
        const std::string name = facts.substr(id + 3, 32);
        for (std::size_t at = text.find(std::string(32, '0'), end); at != std::string::npos;
             at = text.find(std::string(32, '0'), at + 1))
            text.replace(at, 32, name);
    }
    const std::size_t rest = text.find('\n', text.find("check ")) + 1;
    return with_check(text.substr(0, begin) + facts) + text.substr(rest);
}

void read_shape(const std::string& text) {
    const auto shape = container::parse_shape(text);
    if (!shape) return;
    check_shape(*shape);
    require(container::to_text(*shape) == text, "a shape that is written is as it was");
}

void read_about(const std::string& text) {
    const auto about = container::parse_about(text);
    if (!about) return;
    const auto again = container::parse_about(container::to_text(*about));
    require(again && again->header_file == about->header_file && again->file == about->file &&
                again->directory == about->directory,
            "what is written is read as it was");
}

void read_lines(const std::string& text) {
    const auto lines = lines_of(text);
    if (!lines) return;
    std::string facts;
    for (const std::string& line : *lines) {
        require(line.find('\n') == std::string::npos, "one line");
        facts += line + "\n";
    }
    require(with_check(facts) == text, "lines that are written are as they were");
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
    const std::string id = "0123456789abcdef0123456789abcdef";
    std::vector<std::string> seeds;
    const auto seed = [&](std::uint8_t what, const std::string& text) {
        seeds.push_back(FuzzSeed().number(what).text(text).bytes());
    };
    for (const Shape& shape : {Shape{2}, Shape{8, Shape::Kind::subfiles, 1 << 20}, Shape{0, Shape::Kind::log}}) {
        seed(1, container::to_text(shape));
        seed(8, "id " + id + "\nmapping " + container::to_text(shape) + "\n");
        for (const int version : {container::oldest_version, container::newest_version}) {
            const std::string header_file = container::to_text(HeaderFile{id, shape, version});
            seed(0, header_file);
            seed(2, container::to_text(container::About{header_file, "/scratch/a", "directory 12 34.5"}));
            seed(2, container::to_text(container::About{header_file, "/scratch/a", ""}));
        }
    }
    seed(3, with_check("one\ntwo\n"));
    seed(8 | 3, "one\n\n");
    return seeds;
}

}  // namespace ioweir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    FuzzInput input(data, size);
    const auto what = input.number<std::uint8_t>();
    const std::string text = input.rest();
    const bool seals = (what & 8) != 0;
    switch (what % 4) {
        case 0:
            read_header_file(seals ? completed(text) : text);
            break;
        case 1:
            read_shape(text);
            break;
        case 2:
            read_about(text);
            break;
        default:
            read_lines(seals ? with_check(text) : text);
            break;
    }
    return 0;
}
