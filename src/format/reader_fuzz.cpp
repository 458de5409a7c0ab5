// Fuzzes the trace reader: whatever the bytes, it returns (with an Error, or with the damage named), every index it hands out
// is valid, and reading twice gives the same. A fuzz target, see base/fuzz_target.hpp. Inputs: fuzz_image.cpp.
// Each is read in memory; one in 8 also twice, as two nodes', and one in 64 from a file.
// tests/corpus holds what was found. What does not live here: a main().
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "format/reader.hpp"
#include "format/reader_fuzz.hpp"

namespace ioweir::format {
namespace {

/// A file in memory, readable under a path: the same one again and again.
class MemoryFile {
public:
    MemoryFile() : fd_(::memfd_create("trace", MFD_CLOEXEC)) { require(fd_ >= 0, "a file in memory"); }
    ~MemoryFile() { ::close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    void hold(std::span<const std::byte> bytes) const {
        require(::ftruncate(fd_, 0) == 0 && ::ftruncate(fd_, std::ssize(bytes)) == 0, "a file of that length");
        constexpr std::size_t page = 4096;
        for (std::size_t at = 0; at < bytes.size(); at += page) {  // pages of zeros stay holes
            const std::span<const std::byte> part = bytes.subspan(at, std::min(page, bytes.size() - at));
            static constexpr std::byte zeros[page] = {};
            if (std::memcmp(part.data(), zeros, part.size()) == 0) continue;
            require(::pwrite(fd_, part.data(), part.size(), static_cast<off_t>(at)) == std::ssize(part),
                    "room for the file");
        }
    }
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    int fd_;
};

void check_accesses(const Trace& about) {
    require(!about.datatypes.empty() && about.datatypes[0].size == -1, "datatype 0 is unknown");
    require(!about.views.empty() && !about.views[0].set, "view 0 is the file's bytes");
    require(!about.accesses.empty() && about.accesses[0].handle == 0, "access 0 is none");
    for (std::size_t i = 0; i < about.datatypes.size(); ++i)
        for (const std::uint32_t old : about.datatypes[i].types) require(old < i, "a type that another is made from");
    for (const View& view : about.views)
        require(view.etype < about.datatypes.size() && view.filetype < about.datatypes.size(), "a view's types");
    for (const Access& access : about.accesses)
        require(access.view < about.views.size() && access.memory < about.datatypes.size() &&
                    access.path < about.paths.size() &&
                    (access.process == 0 || access.process < about.processes.size()),
                "what an access names");
}

void check(const TraceFiles& files) {
    const Trace& about = files.about();
    require(!about.paths.empty() && about.paths[0].empty(), "path 0 is the unknown one");
    require(!about.sites.empty() && about.sites[0].empty(), "site 0 is none");
    for (const Process& process : about.processes) require(process.host < about.hosts.size(), "a process's host");
    for (const EngineWork& one : about.engine_work)
        require(one.process < about.processes.size(), "an engine's process");
    for (const ChosenFile& one : about.chosen_files)
        require(one.process < about.processes.size(), "the process of a choice");
    for (const WeighedCalls& one : about.weighed_calls)
        require(one.process < about.processes.size(), "a weighing's process");
    for (const Verdict& one : about.verdicts) require(one.process < about.processes.size(), "a verdict's process");
    for (const Note& note : about.notes) require(note.process < about.processes.size(), "a note's process");
    for (const auto& site : about.sites)
        for (const SiteFrame& frame : site)
            require(frame.module >= -1 && frame.module < static_cast<std::int64_t>(about.modules.size()),
                    "a call's module");
    check_accesses(about);
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
            require(event.access < about.accesses.size(), "an event's access");
        }
        require(of_thread == thread.events, "a thread's number of events");
        count += of_thread;
    }
    require(count == files.event_count(), "the number of events");
    require(files.read_events().function.size() == count, "the number of entries in the columns");
}

/// In memory; `twice`: also as two nodes', `mapped`: also from a file.
void read_image(std::span<const std::byte> image, const RunSpan& span, bool twice, bool mapped) {
    const TraceBytes one{"trace", image};
    const Result<TraceFiles> files = TraceFiles::read({&one, 1}, span);
    if (files) check(files.value());
    if (twice) {
        const TraceBytes two[] = {one, one};
        const Result<TraceFiles> pair = TraceFiles::read(two, span);
        require(pair.ok() == files.ok(), "a second file changes whether the first can be read");
        if (pair) check(pair.value());
    }
    if (!mapped) return;
    static const MemoryFile file;
    file.hold(image);
    const Result<TraceFiles> from_file = TraceFiles::open({file.path()}, span);
    require(from_file.ok() == files.ok(), "a file and its bytes");
    if (!from_file) return;
    check(from_file.value());
    require(from_file.value().event_count() == files.value().event_count() &&
                from_file.value().about().damage.size() == files.value().about().damage.size(),
            "a file is read as its bytes are");
}

}  // namespace

void read_everything(const std::vector<std::uint8_t>& bytes) { read_image(image_of(bytes), {}, true, true); }

void read_packed(const std::uint8_t* data, std::size_t size) {
    const PackedTrace trace = image_of(data, size);
    read_image(trace.bytes, trace.span, is_one_in(8, data, size), is_one_in(64, data, size));
}

}  // namespace ioweir::format

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ioweir::format::read_packed(data, size);
    return 0;
}
