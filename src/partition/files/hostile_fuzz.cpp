// Fuzzes the readers of partitioned files: see hostile_files.hpp. What they read of a file's texts by themselves: partition/core/headers_fuzz.cpp.
// An input says what is changed in a whole file, so that it is short and most of it is reached: a byte (1: a serial file, else a set's; 2: it is read
// twice), 4 bytes of length to cut it to (0: none), then pieces of 4 bytes of offset, 2 of length, and the bytes themselves.
// One set in 4 is checked as a whole, too, and one in 256 converted.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "base/testing.hpp"
#include "partition/files/hostile_files.hpp"
#include "partition/files/names.hpp"
#include "partition/files/whole_files.hpp"

namespace ioweir {
namespace {

/// Of a set's file: short, so that no number of parts that fits into it takes long.
constexpr std::int64_t header_bytes = partition::table_begin + 64;

struct Ways {
    bool twice = false, checks = false, converts = false;
};

/// A whole file, again and again.
class File {
public:
    File(std::string folder, std::string path, std::string bytes, bool is_set)
        : folder_(std::move(folder)), path_(std::move(path)), whole_(std::move(bytes)), is_set_(is_set) {
        std::filesystem::create_directories(folder_);
        descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        require(descriptor_ >= 0 && ::ftruncate(descriptor_, std::ssize(whole_)) == 0, "a file for the input");
        constexpr std::int64_t block_bytes = 4096;
        for (std::int64_t at = 0; at < std::ssize(whole_); at += block_bytes) {
            const std::int64_t end = std::min(at + block_bytes, std::ssize(whole_));
            const auto first = whole_.begin() + at;
            if (std::any_of(first, whole_.begin() + end, [](char c) { return c != 0; })) blocks_.push_back({at, end});
        }
        for (const Piece& block : blocks_) put(whole_.data() + block.begin, block.begin, block.end);
    }

    void read_with(FuzzInput& input, const Ways& how) {
        std::int64_t length = input.number<std::uint32_t>();
        if (length == 0 || length > std::ssize(whole_)) length = std::ssize(whole_);
        std::vector<Piece> changed;
        while (!input.empty()) {
            const std::int64_t begin = input.number<std::uint32_t>();
            const std::string bytes = input.text(input.number<std::uint16_t>());
            if (begin >= std::ssize(whole_)) continue;
            const std::int64_t end = std::min(begin + std::ssize(bytes), std::ssize(whole_));
            put(bytes.data(), begin, end);
            changed.push_back({begin, end});
        }
        require(::ftruncate(descriptor_, length) == 0, "a file of that length");
        const partition::HostileFile all{is_set_, how.checks, how.converts}, plain{is_set_, false, false};
        const std::string once = partition::read_hostile_file(folder_, path_, length, all);
        if (how.twice)
            require(once == partition::read_hostile_file(folder_, path_, length, plain) || how.converts,
                    "the same once more");
        if (how.converts) remove_converted();
        require(::ftruncate(descriptor_, std::ssize(whole_)) == 0, "a file as it was");
        for (const Piece& piece : changed) put(whole_.data() + piece.begin, piece.begin, piece.end);
        if (length == std::ssize(whole_)) return;
        for (const Piece& block : blocks_) {
            if (block.end > length) put(whole_.data() + block.begin, block.begin, block.end);
        }
    }

private:
    struct Piece {
        std::int64_t begin = 0, end = 0;
    };

    void put(const char* bytes, std::int64_t begin, std::int64_t end) const {
        if (begin == end) return;
        require(::pwrite(descriptor_, bytes, static_cast<std::size_t>(end - begin), begin) == end - begin,
                "room for the input");
    }
    void remove_converted() const {
        for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
            if (entry.path().filename().string().starts_with("serial")) std::filesystem::remove(entry.path());
        }
    }

    std::string folder_, path_, whole_;
    bool is_set_;
    int descriptor_ = -1;
    std::vector<Piece> blocks_;  ///< not all zeros
};

struct Files {
    TemporaryFolder folder;
    File set{folder.file("set"), partition::SetName{folder.file("set") + "/run", 1, false}.file(0),
             partition::file_bytes({0, 3}, header_bytes), true};
    File serial{folder.file("serial"), partition::serial_path(folder.file("serial") + "/run", 1, 0),
                partition::serial_bytes(), false};
};

}  // namespace

std::vector<std::string> fuzz_seeds() {
    const auto seed = [](std::uint8_t flags, std::uint32_t length, std::uint32_t offset, std::string_view bytes) {
        FuzzSeed input;
        input.number(flags).number(length).number(offset).number(static_cast<std::uint16_t>(bytes.size()));
        return input.text(bytes).bytes();
    };
    const std::string set = partition::file_bytes({0, 3}, header_bytes), serial = partition::serial_bytes();
    std::vector<std::string> seeds{seed(0, 0, 0, ""), seed(1, 0, 0, ""), seed(2, 0, 0, ""), seed(3, 5000, 0, "")};
    // Where texts and numbers are: the front, the table, the blocks' headers.
    for (const std::uint32_t at : {0U, 64U, 96U, 128U, 256U, 384U, 8192U, 8256U, 8256U + 1024, 8256U + 2056})
        seeds.push_back(seed(0, 0, at, std::string_view(set).substr(at, 40)));
    for (std::uint32_t at = 0; at < serial.size(); at += 64)
        seeds.push_back(seed(1, 0, at, std::string_view(serial).substr(at, 64)));
    return seeds;
}

}  // namespace ioweir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    static Files files;
    FuzzInput input(data, size);
    const auto flags = input.number<std::uint8_t>();
    File& file = (flags & 1) != 0 ? files.serial : files.set;
    file.read_with(input, {(flags & 2) != 0, is_one_in(4, data, size), is_one_in(256, data, size)});
    return 0;
}
