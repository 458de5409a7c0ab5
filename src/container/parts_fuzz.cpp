// Fuzzes every file of a container: of small whole ones, of each kind and version, one file is replaced by the input. Whoever looks at it or reads
// from it is told what is wrong, or gets what follows from the texts; damage to a text that is sealed is always seen.
// An input: a byte (which container), a byte (which of its files), a byte (1: the text is sealed first; 2: it replaces the end of the file only),
// 2 bytes (from where on), and the text. Of one in four, bytes of the file are read, too.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/checked_text.hpp"
#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "base/testing.hpp"
#include "container/container.hpp"
#include "container/files/subfiles.hpp"
#include "container/merge.hpp"
#include "storage/posix.hpp"

namespace ioweir {
namespace {

namespace fs = std::filesystem;
using container::Container;
using container::Directory;
using container::HeaderFile;
using container::Role;
using container::Shape;

constexpr std::uint32_t ranks = 2;
constexpr std::int64_t piece = 16, written_bytes = 4 * piece;

/// Two ranks have written two pieces each in turn, and closed it. Always with the same id.
class Whole {
public:
    Whole(const std::string& folder, Shape shape, int version) : path_(folder + "/file") {
        fs::create_directory(folder);
        const HeaderFile header_file{"0123456789abcdef0123456789abcdef", shape, version};
        directory_ = container::directory_of(path_, header_file);
        require(container::make(directory_, path_, header_file) == 0, "a container's directory");
        if (!directory_.has_index()) require(container::make_subfiles(directory_, {}).ok(), "a container's subfiles");
        std::ofstream(path_, std::ios::binary) << container::to_text(header_file);
        write();
        for (const auto& entry : fs::recursive_directory_iterator(folder)) {
            if (entry.is_regular_file()) add(entry.path().string());
        }
        std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.path < b.path; });
        const auto described = container::describe(path_);
        require(described.ok() && described.value().problems.empty() && described.value().bytes == written_bytes,
                "a whole container");
    }

    [[nodiscard]] std::size_t parts() const { return parts_.size(); }
    [[nodiscard]] const std::string& content(std::size_t part) const { return parts_[part].content; }
    [[nodiscard]] std::string name(std::size_t part) const { return fs::path(parts_[part].path).filename().string(); }

    /// `reads`: bytes of the file, too, not only what there is to say about it.
    void read_with(std::size_t part, const std::string& text, bool sealed, bool reads) {
        const Part& changed = parts_[part];
        put(changed, text, 0, std::ssize(text));
        look(changed, text, sealed, reads);
        require(::ftruncate(changed.descriptor, 0) == 0, "a file that was put back");
        for (const Block& block : changed.blocks) put(changed, changed.content, block.begin, block.bytes);
    }

private:
    /// Of a file: not all zeros.
    struct Block {
        std::int64_t begin = 0, bytes = 0;
    };
    struct Part {
        std::string path, content;
        int descriptor = -1;
        std::vector<Block> blocks;
    };

    void write() {
        const auto generation = container::begin_generation(directory_);
        require(generation.ok(), "a generation");
        container::Left all;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            const bool groups = directory_.shape.kind == Shape::Kind::grouped;
            const Role role{false, true, groups ? static_cast<std::int32_t>(rank) : 0, rank, generation.value().number};
            auto writer = Container::open(backend_, clock_, directory_, role);
            require(writer.ok(), "a container that is open");
            const std::string bytes(static_cast<std::size_t>(piece), static_cast<char>('a' + rank));
            for (const std::int64_t at : {rank * piece, (rank + ranks) * piece})
                require(writer.value()->write_at(-1, bytes.data(), piece, at).error == 0, "a write");
            container::Left left;
            require(writer.value()->leave(role, &left) == 0, "a close");
            all += left;
        }
        if (!directory_.has_index()) {
            const auto subfiles = container::read_subfiles(directory_);
            require(subfiles && container::keep_sizes(directory_, subfiles.value(), generation.value().number) == 0,
                    "the sizes of subfiles");
        }
        require(container::end_generation(directory_, generation.value().number, clock_.last(), all) == 0, "an end");
    }

    void add(const std::string& path) {
        std::ifstream in(path, std::ios::binary);
        Part part{path, {std::istreambuf_iterator<char>(in), {}}, ::open(path.c_str(), O_RDWR | O_CLOEXEC), {}};
        require(part.descriptor >= 0, "a container's file");
        constexpr std::int64_t block_bytes = 4096;
        for (std::int64_t at = 0; at < std::ssize(part.content); at += block_bytes) {
            const std::int64_t bytes = std::min(block_bytes, std::ssize(part.content) - at);
            const auto first = part.content.begin() + at;
            if (std::any_of(first, first + bytes, [](char c) { return c != 0; })) part.blocks.push_back({at, bytes});
        }
        require(part.blocks.empty() || part.blocks.back().begin + part.blocks.back().bytes == std::ssize(part.content),
                "a file that ends with bytes");
        parts_.push_back(std::move(part));
    }

    /// The file ends there.
    static void put(const Part& part, const std::string& text, std::int64_t begin, std::int64_t bytes) {
        require(::ftruncate(part.descriptor, begin + bytes) == 0 &&
                    ::pwrite(part.descriptor, text.data() + begin, static_cast<std::size_t>(bytes), begin) == bytes,
                "room for the input");
    }

    void look(const Part& part, const std::string& text, bool sealed, bool reads) {
        const auto described = container::describe(path_);
        if (!described) {
            require(!described.error().what.empty(), "an error without words");
            require(described.error().message().size() < 4000 + 8 * text.size(), "an error much longer than the files");
            return;
        }
        const container::Description& about = described.value();
        require(about.bytes >= 0 && about.held_bytes >= 0 && about.segments >= 0 && about.entries >= 0,
                "the numbers of a container");
        if (about.problems.empty()) require(about.held_bytes <= about.bytes, "bytes beyond the end");
        require(about.part_bytes.size() == about.part_paths.size(), "the bytes of each part");
        const std::string last = fs::path(part.path).filename().string();
        // An index that says the same twice says nothing else.
        const bool is_repeated = last.starts_with("index.") && says_the_same(text, part.content);
        const bool telling = last == "file" || last == "places" || last == "sizes" || last.starts_with("closed.") ||
                             last.starts_with("index.");
        if (telling && !sealed && text != part.content && !is_repeated)
            require(!about.problems.empty(), "damage that nobody has seen");
        if (reads) read_some(about.bytes);
    }

    /// The batches of an index without the room behind them: zeros, which no batch begins with, but some end with.
    [[nodiscard]] std::string_view without_room(std::string_view text) const {
        const std::size_t last = text.find_last_not_of('\0');
        const std::size_t first_end = last == std::string_view::npos ? 0 : last + 1;
        constexpr std::size_t most_zeros_of_a_batch = 64;
        for (std::size_t end = first_end; end <= std::min(text.size(), first_end + most_zeros_of_a_batch); ++end) {
            if (container::decode(text.substr(0, end), directory_.identity(), 0).damage.empty())
                return text.substr(0, end);
        }
        return text;
    }

    /// All batches of `whole` and no others, in any order and number.
    [[nodiscard]] bool says_the_same(const std::string& text, const std::string& whole) const {
        const auto identity = directory_.identity();
        const auto changed = container::decode(without_room(text), identity, 0),
                   as_it_was = container::decode(whole, identity, 0);
        const auto all_in = [](const container::Decoded& some, const container::Decoded& others) {
            return std::all_of(some.batches.begin(), some.batches.end(), [&](const container::Batch& batch) {
                return std::find(others.batches.begin(), others.batches.end(), batch) != others.batches.end();
            });
        };
        return changed.damage.empty() && all_in(changed, as_it_was) && all_in(as_it_was, changed);
    }

    void read_some(std::int64_t bytes) {
        auto reader = Container::open(backend_, clock_, directory_, Role{true, false, 0, 0, 0});
        if (!reader) return;
        char some[2 * piece];
        for (const std::int64_t at : {std::int64_t{0}, bytes / 2, std::max<std::int64_t>(0, bytes - piece)}) {
            const auto done = reader.value()->read_at(-1, some, sizeof some, at);
            require(done.bytes >= 0 && done.bytes <= std::ssize(some), "the bytes of a read");
        }
        (void)reader.value()->length();
    }

    storage::PosixBackend backend_;
    container::Clock clock_{[] { return std::int64_t{1'000'000}; }};
    std::string path_;
    Directory directory_;
    std::vector<Part> parts_;
};

class All {
public:
    All() {
        const Shape shapes[] = {{2}, {2, Shape::Kind::subfiles, 32}, {0, Shape::Kind::log}};
        for (const int version : {container::newest_version, container::oldest_version}) {
            for (const Shape& shape : shapes)
                containers_.push_back(
                    std::make_unique<Whole>(folder_.file(std::to_string(containers_.size())), shape, version));
        }
    }
    [[nodiscard]] std::size_t size() const { return containers_.size(); }
    [[nodiscard]] Whole& at(std::size_t number) { return *containers_[number % containers_.size()]; }

private:
    TemporaryFolder folder_;
    std::vector<std::unique_ptr<Whole>> containers_;
};

All& all() {
    static All containers;
    return containers;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
    constexpr std::size_t check_bytes = 23;
    std::vector<std::string> seeds;
    for (std::size_t number = 0; number < all().size(); ++number) {
        Whole& whole = all().at(number);
        for (std::size_t part = 0; part < whole.parts(); ++part) {
            const std::string& content = whole.content(part);
            const auto seed = [&](std::uint8_t flags, std::uint16_t from, const std::string& text) {
                FuzzSeed input;
                input.number(static_cast<std::uint8_t>(number)).number(static_cast<std::uint8_t>(part));
                seeds.push_back(input.number(flags).number(from).text(text).bytes());
            };
            // Of a group's file, a header and a hole of 1 MiB come before the bytes.
            seed(0, 0, content.substr(0, 4096));
            if (content.size() > check_bytes && content.substr(content.size() - check_bytes).starts_with("check "))
                seed(1, 0, content.substr(0, content.size() - check_bytes));
            if (whole.name(part).starts_with("index.")) seed(2, 0, content);
        }
    }
    return seeds;
}

}  // namespace ioweir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    FuzzInput input(data, size);
    Whole& whole = all().at(input.number<std::uint8_t>());
    const std::size_t part = input.number<std::uint8_t>() % whole.parts();
    const auto flags = input.number<std::uint8_t>();
    const std::size_t from = input.number<std::uint16_t>();
    std::string text = input.rest();
    const bool sealed = (flags & 1) != 0;
    if (sealed) text = with_check(text);
    if ((flags & 2) != 0) text = whole.content(part).substr(0, from) + text;
    whole.read_with(part, text, sealed, is_one_in(4, data, size));
    return 0;
}
