// Fuzzes the trace reader: whatever the bytes, it returns (with an Error, or with the damage named), every index it hands out
// is valid, and reading twice gives the same. Runs under libFuzzer (`make fuzz`) and over the kept corpus (reader_corpus).
//
// An input is a sparse file, because a real one is mostly zeros: 4 bytes of length, then pieces of 4 bytes of offset, 2 bytes
// of length and the bytes themselves (little-endian). tests/corpus holds what was found; fuzz_seeds.cpp makes whole traces.
// What does not live here: a main().
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/fuzz_input.hpp"
#include "format/reader.hpp"
#include "format/reader_fuzz.hpp"

namespace ioweir::format {
namespace {

constexpr std::size_t longest_file = 1U << 20;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken promise of the reader: %s\n", what);
    std::abort();
}

/// A file in memory, readable under a path as long as it lives.
class MemoryFile {
public:
    explicit MemoryFile(const std::vector<std::uint8_t>& bytes) : fd_(::memfd_create("trace", MFD_CLOEXEC)) {
        require(fd_ >= 0, "no memory for the file");
        for (std::size_t done = 0; done < bytes.size();) {
            const ssize_t written = ::write(fd_, bytes.data() + done, bytes.size() - done);
            require(written > 0, "no memory for the file");
            done += static_cast<std::size_t>(written);
        }
    }
    ~MemoryFile() { ::close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    int fd_;
};

void check(const TraceFiles& files) {
    const Trace& about = files.about();
    require(!about.paths.empty() && about.paths[0].empty(), "path 0 is the unknown one");
    require(!about.sites.empty() && about.sites[0].empty(), "site 0 is none");
    for (const Process& process : about.processes) require(process.host < about.hosts.size(), "a process's host");
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

}  // namespace

std::vector<std::uint8_t> unpack(const std::uint8_t* data, std::size_t size) {
    std::uint32_t length = 0;
    if (!take(data, size, length)) return {};
    std::vector<std::uint8_t> bytes(length % (longest_file + 1));
    if (bytes.empty()) return bytes;
    std::uint32_t offset = 0;
    std::uint16_t piece = 0;
    while (take(data, size, offset) && take(data, size, piece)) {
        const std::size_t taken = piece < size ? piece : size;
        const std::size_t place = offset % bytes.size();
        const std::size_t room = bytes.size() - place;
        std::memcpy(bytes.data() + place, data, taken < room ? taken : room);
        data += taken;
        size -= taken;
    }
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
    const MemoryFile file(bytes);
    const Result<TraceFiles> files = TraceFiles::open({file.path()});
    if (files) check(files.value());
    // Twice the same file: two nodes whose images have the same numbers.
    const Result<TraceFiles> pair = TraceFiles::open({file.path(), file.path()});
    require(pair.ok() == files.ok(), "a second file changes whether the first can be read");
    if (pair) check(pair.value());
}

}  // namespace ioweir::format

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ioweir::format::read_everything(ioweir::format::unpack(data, size));
    return 0;
}
