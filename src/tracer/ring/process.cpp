#include "tracer/ring/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/raw_syscall.hpp"
#include "base/standard_error.hpp"
#include "tracer/ring/align.hpp"
#include "tracer/ring/call_site.hpp"
#include "tracer/ring/process_state.hpp"

namespace ioweir::tracer {

Tracer process_tracer;
constinit thread_local ThreadStream thread_stream __attribute__((tls_model("initial-exec")));
constinit Process process;

std::uint64_t realtime_ns() { return clock_ns(CLOCK_REALTIME) + static_cast<std::uint64_t>(process.clock_skew_ns); }

void name_image() {
    process.start_tick = ticks(process_tracer.use_tsc);
    process_tracer.start_tick = process.start_tick;
    process_tracer.start_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    process.pid.store(raw::process_id());
    process.image = (static_cast<std::uint64_t>(process.pid.load()) << 32) | ((process.start_tick >> 8) & 0xffff'ffffU);
}

namespace {

/// A stream in a child of fork, for whoever has claimed it, or for nobody.
void renew(ThreadStream& stream, bool claimed) {
    ThreadStream* const deputy = stream.deputy;
    stream = ThreadStream{.writing = claimed, .in_refill = claimed};
    stream.deputy = deputy;
}

/// The same for one whose writing was interrupted by the handler that forked. What was interrupted goes on with the cursor
/// that it has, over memory that cover_chunk() put there; whoever comes next finds no room.
void retire(ThreadStream& stream) {
    stream.limit = nullptr;
    stream.end = stream.cursor;
    stream.chunk = nullptr;
    stream.depth = 0;
    stream.stream = 0;
}

}  // namespace

void after_fork(ThreadStream& stream) {
    process.parent_image = process.image;
    name_image();
    *process.alive = 1;
    process.next_stream.store(0);
    process.chunks.store(0);
    process.mapped_bytes.store(0);
    process.described.store(false);
    process.exhausted.store(false);
    process.attaching.clear();
    Scratch::after_fork();
    for (auto& spare : process.spare) spare.store(nullptr);
    for (ThreadStream* each = &thread_stream; each != nullptr; each = each->deputy) {
        if (each->writing && each != &stream)
            retire(*each);
        else
            renew(*each, each == &stream);
    }
}

bool attach_file(bool may_wait) {
    if (process.file.attached()) return true;
    while (process.attaching.test_and_set(std::memory_order_acquire)) {  // once a process, at its first event
        if (!may_wait) return false;
    }
    int error = 0;
    if (!process.file.attached()) error = process.file.attach(process.directory, process_tracer.use_tsc);
    if (error == 0)
        __atomic_fetch_add(&process.file.header()->dropped_events, process.early_drops.exchange(0), __ATOMIC_RELAXED);
    process.attaching.clear(std::memory_order_release);
    if (error == 0) return true;
    complain(process.file.failed_step(), process.file.path(), error);
    process_tracer.active = false;
    process_tracer.layers = 0;
    return false;
}

void count_drop() {
    if (process.file.attached())
        __atomic_fetch_add(&process.file.header()->dropped_events, 1, __ATOMIC_RELAXED);
    else
        process.early_drops.fetch_add(1, std::memory_order_relaxed);
}

namespace {

void map_alive_word() {
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    ::madvise(page, 4096, MADV_WIPEONFORK);
    process.alive = static_cast<std::uint32_t*>(page);
    *process.alive = 1;
    process_tracer.alive = process.alive;
}

/// In a child that a signal handler forked, at once: what the handler interrupted may be about to write into its chunk, which
/// is not mapped here. It gets memory that nobody reads; the call that it was recording is in the parent's trace.
void cover_chunks() {
    for (const ThreadStream* each = &thread_stream; each != nullptr; each = each->deputy) {
        if (!each->writing || each->chunk == nullptr) continue;
        const std::size_t bytes = mapped_bytes_of(*each);
        void* const place = ::mmap(each->chunk, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        // Kernels before 4.17 take the address as a wish.
        if (place != MAP_FAILED && place != each->chunk) ::munmap(place, bytes);
    }
}

/// By what the kernel says, so that descriptors of every origin count: duplicates, fopen's, inherited ones.
bool program_has_open(std::uint64_t device, std::uint64_t inode) {
    const auto is_the_programs = [&](int fd) {
        struct stat status{};
        return !is_engine_descriptor(fd) && raw::fstat(fd, &status) == 0 && status.st_dev == device &&
               status.st_ino == inode;
    };
    DIR* directory = ::opendir("/proc/self/fd");
    if (directory == nullptr) {
        // No descriptor is left: with the answer that it may be so the engine would not close its own either.
        rlimit most{};
        if (raw::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, raw::word(&most)) != 0) return true;
        // Those that are open stay so when the limit is lowered.
        constexpr rlim_t usual = 65536;
        const auto end = static_cast<int>(
            std::min<rlim_t>(std::max<rlim_t>(most.rlim_cur, usual), static_cast<rlim_t>(descriptor_capacity)));
        for (int fd = 0; fd < end; ++fd)
            if (is_the_programs(fd)) return true;
        return false;
    }
    bool found = false;
    while (const dirent* entry = ::readdir(directory)) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
        found = is_the_programs(std::atoi(entry->d_name));
        if (found) break;
    }
    ::closedir(directory);
    return found;
}

bool kernel_uses_tsc() {
    char name[16] = {};
    const int fd =
        raw::openat(AT_FDCWD, "/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY, 0);
    if (fd < 0) return false;
    const ssize_t length = raw::read(fd, name, sizeof name - 1);
    raw::close(fd);
    return length >= 4 && std::strncmp(name, "tsc\n", 4) == 0;
}

}  // namespace

void prepare() {
    process_tracer.append = append;
    process_tracer.thread_offset =
        reinterpret_cast<std::byte*>(&thread_stream) - static_cast<std::byte*>(__builtin_thread_pointer());
    process_tracer.has_open = program_has_open;
    process_tracer.engine_descriptors_gone = &engine_descriptors_gone;
}

void start(const Settings& settings) {
    if (settings.anonymise_key != nullptr) {
        // Never written down as they are because of a slip.
        if (!parse_key(settings.anonymise_key, process.anonymise_key)) {
            complain("not tracing: IOWEIR_ANONYMISE is no key (32 hexadecimal digits):", settings.anonymise_key, 0);
            return;
        }
        process.anonymous = true;
    }
    if (std::snprintf(process.directory, sizeof process.directory, "%s", settings.directory) >=
        static_cast<int>(sizeof process.directory)) {
        complain("not tracing: the trace directory's path is too long", "", ENAMETOOLONG);
        return;
    }
#if defined(__x86_64__)
    process_tracer.use_tsc = kernel_uses_tsc();
#endif
    map_alive_word();
    if (process.alive == nullptr) {
        complain("not tracing: no memory for", "one page", errno);
        return;
    }
    name_image();
    process.have_key = ::pthread_key_create(&process.key, thread_ended) == 0;
    process_tracer.refill = refill_stream;
    connect_records();
    process_tracer.deputy = deputy_of;
    process.clock_skew_ns = settings.test_clock_skew_ns;
    set_reference_clock(settings.clock, settings.test_clock_skew_ns == 0);
    if (settings.call_sites) {
        if (prepare_call_sites(settings.find_function))
            process_tracer.call_site = call_site;
        else
            complain("call sites are not recorded: no memory for", "their table", errno);
    }
    process.limits = settings.limits;
    process_tracer.layers = settings.layers;
    process_tracer.active = true;
}

void stop() {
    if (!process_tracer.active || *process.alive == 0) return;
    if (!process.described.load()) {
        // There was nothing to record. That it was watched, the header of the node's file tells; who cannot leave one is silent.
        if (!process.file.attached() && !process.attaching.test_and_set(std::memory_order_acquire)) {
            process.file.attach(process.directory, process_tracer.use_tsc);
            process.attaching.clear(std::memory_order_release);
        }
        return;
    }
    write_end();
    const Writing writing(process_tracer, thread_stream);
    if (writing.stream() != &thread_stream) return;
    give_back_tails(thread_stream);
    if (thread_stream.chunk != nullptr) seal(thread_stream.chunk, thread_stream.cursor);
}

void complain(const char* text, const char* detail, int error_number) {
    if (!process.complained.exchange(true)) say(text, detail, error_number);
}

void say(const char* text, const char* detail, int error_number) {
    char line[512];
    char words[128];
    const char* reason = error_number != 0 ? ::strerror_r(error_number, words, sizeof words) : nullptr;
    const int length =
        std::snprintf(line, sizeof line, "ioweir: process %d: %s %s%s%s; the program goes on unharmed\n",
                      raw::process_id(), text, detail, reason != nullptr ? ": " : "", reason != nullptr ? reason : "");
    if (length > 0)
        say_line({line,
                  static_cast<std::size_t>(length) < sizeof line ? static_cast<std::size_t>(length) : sizeof line - 1});
}

void begin_child() {
    if (thread_stream.writing && *process.alive == 0) cover_chunks();
}

std::uint64_t* node_alignment() { return process.file.attached() ? &process.file.header()->aligned_ns : nullptr; }

bool owns_descriptors() {
    return *process.alive == 0 || raw::process_id() == process.pid.load(std::memory_order_relaxed);
}

}  // namespace ioweir::tracer
