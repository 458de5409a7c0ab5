// Fuzzes the trace reader: whatever the bytes, it returns (with an Error, or with the damage named), every index it hands out
// is valid, and reading twice gives the same. A fuzz target, see base/fuzz_target.hpp.
//
// An input is a sparse file, because a real one is mostly zeros: 4 bytes of length, then pieces of 4 bytes of offset, 2 bytes
// of length and the bytes themselves (little-endian). tests/corpus holds what was found; fuzz_seeds.cpp makes whole traces.
// What does not live here: a main().
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "format/reader.hpp"
#include "format/reader_fuzz.hpp"

namespace ioweir::format {
namespace {

constexpr std::size_t longest_file = 1U << 20;

/// A file in memory, readable under a path: the same one again and again.
class MemoryFile {
public:
    MemoryFile() : fd_(::memfd_create("trace", MFD_CLOEXEC)) { require(fd_ >= 0, "a file in memory"); }
    ~MemoryFile() { ::close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    /// Empty, of that length: what is not put there is a hole.
    void begin(std::size_t bytes) const {
        require(::ftruncate(fd_, 0) == 0 && ::ftruncate(fd_, static_cast<off_t>(bytes)) == 0, "a file of that length");
    }
    void put(const std::uint8_t* data, std::size_t bytes, std::size_t at) const {
        const auto length = static_cast<ssize_t>(bytes);
        require(::pwrite(fd_, data, bytes, static_cast<off_t>(at)) == length, "room for the file");
    }
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    int fd_;
};

void check(const TraceFiles& files) {
    const Trace& about = files.about();
    require(!about.paths.empty() && about.paths[0].empty(), "path 0 is the unknown one");
    require(!about.sites.empty() && about.sites[0].empty(), "site 0 is none");
    for (const Process& process : about.processes) require(process.host < about.hosts.size(), "a process's host");
    for (const Verdict& one : about.verdicts) require(one.process < about.processes.size(), "a verdict's process");
    for (const Note& note : about.notes) require(note.process < about.processes.size(), "a note's process");
    for (const auto& site : about.sites)
        for (const SiteFrame& frame : site)
            require(frame.module >= -1 && frame.module < static_cast<std::int64_t>(about.modules.size()),
                    "a call's module");
    std::uint64_t count = 0;
    for (std::uint32_t number = 0; number < files.threads().size(); ++number) {
        const Thread& thread = files.threads()[number];
        require(thread.process < about.processes.size(), "a thread's process");
        ThreadCursor cursor = files.cursor(number);
        Event event;
        std::uint64_t of_thread = 0;
        while (cursor.next(event)) {
            ++of_thread;
            require(event.thread == number, "an event's thread");
            require(event.function != 0 && event.function < function_count, "an event's function");
            require(event.path < about.paths.size(), "an event's path");
            require(event.site < about.sites.size(), "an event's call site");
        }
        require(of_thread == thread.events, "a thread's number of events");
        count += of_thread;
    }
    require(count == files.event_count(), "the number of events");
    require(files.read_events().function.size() == count, "the number of entries in the columns");
}

/// Hands over the length of the file that an input stands for, then its pieces.
template <typename Begin, typename Piece>
void for_each_piece(const std::uint8_t* data, std::size_t size, Begin begin, Piece visit) {
    std::uint32_t length = 0;
    const bool is_there = take(data, size, length);
    const std::size_t bytes = is_there ? length % (longest_file + 1) : 0;
    begin(bytes);
    std::uint32_t offset = 0;
    std::uint16_t piece = 0;
    while (bytes > 0 && take(data, size, offset) && take(data, size, piece)) {
        const std::size_t taken = piece < size ? piece : size;
        const std::size_t place = offset % bytes;
        visit(data, std::min(taken, bytes - place), place);
        data += taken;
        size -= taken;
    }
}

const MemoryFile& the_file() {
    static const MemoryFile file;
    return file;
}

void read_the_file() {
    const std::string path = the_file().path();
    const Result<TraceFiles> files = TraceFiles::open({path});
    if (files) check(files.value());
    // Twice the same file: two nodes whose images have the same numbers.
    const Result<TraceFiles> pair = TraceFiles::open({path, path});
    require(pair.ok() == files.ok(), "a second file changes whether the first can be read");
    if (pair) check(pair.value());
}

}  // namespace

std::vector<std::uint8_t> unpack(const std::uint8_t* data, std::size_t size) {
    std::vector<std::uint8_t> bytes;
    for_each_piece(
        data, size, [&](std::size_t length) { bytes.resize(length); },
        [&](const std::uint8_t* from, std::size_t length, std::size_t at) {
            std::copy_n(from, length, bytes.begin() + static_cast<std::ptrdiff_t>(at));
        });
    return bytes;
}

std::vector<std::uint8_t> pack(const std::vector<std::uint8_t>& bytes) {
    std::vector<std::uint8_t> out;
    const auto put = [&out](const void* value, std::size_t size) {
        const auto* from = static_cast<const std::uint8_t*>(value);
        out.insert(out.end(), from, from + size);
    };
    const auto length = static_cast<std::uint32_t>(bytes.size());
    put(&length, sizeof length);
    constexpr std::size_t longest_hole = 16;  // shorter ones cost less inside of a piece
    for (std::size_t begin = 0; begin < bytes.size();) {
        if (bytes[begin] == 0) {
            ++begin;
            continue;
        }
        std::size_t end = begin;
        for (std::size_t at = begin; at < bytes.size() && at - end <= longest_hole && at - begin < UINT16_MAX; ++at)
            if (bytes[at] != 0) end = at + 1;
        const auto offset = static_cast<std::uint32_t>(begin);
        const auto piece = static_cast<std::uint16_t>(end - begin);
        put(&offset, sizeof offset);
        put(&piece, sizeof piece);
        put(bytes.data() + begin, piece);
        begin = end;
    }
    return out;
}

void read_everything(const std::vector<std::uint8_t>& bytes) {
    the_file().begin(bytes.size());
    if (!bytes.empty()) the_file().put(bytes.data(), bytes.size(), 0);
    read_the_file();
}

void read_packed(const std::uint8_t* data, std::size_t size) {
    for_each_piece(
        data, size, [](std::size_t length) { the_file().begin(length); },
        [](const std::uint8_t* from, std::size_t length, std::size_t at) { the_file().put(from, length, at); });
    read_the_file();
}

}  // namespace ioweir::format

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ioweir::format::read_packed(data, size);
    return 0;
}
