#include "tracer/ring/process.hpp"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "base/raw_syscall.hpp"
#include "base/standard_error.hpp"
#include "format/seal.hpp"
#include "tracer/ring/align.hpp"
#include "tracer/ring/anonymise.hpp"
#include "tracer/ring/call_site.hpp"
#include "tracer/ring/limits.hpp"
#include "tracer/ring/node_file.hpp"
#include "tracer/ring/paths.hpp"
#include "tracer/ring/scratch.hpp"

namespace ioweir::tracer {

Tracer process_tracer;
constinit thread_local ThreadStream thread_stream __attribute__((tls_model("initial-exec")));

namespace {

constexpr std::size_t path_capacity = NodeFile::path_capacity;
static_assert(Scratch::bytes == 2 * path_capacity);
constexpr std::size_t kib = 1024;

/// Everything of this process that is not per thread. No code initialises it: that would run after load() and undo it.
struct Process {
    char directory[path_capacity] = {};
    NodeFile file{};
    std::uint32_t* alive{};  // see Tracer::alive
    std::uint64_t image{};
    std::uint64_t parent_image{};
    std::uint64_t start_tick{};
    std::atomic<std::uint32_t> next_file{};
    std::atomic<std::uint32_t> next_stream{};
    std::atomic<std::uint32_t> chunks{};
    std::atomic<std::uint64_t> mapped_bytes{};  // of chunks
    Limits limits{};
    std::atomic<bool> described{};  // the ProcessRecord was written
    std::atomic<bool> exhausted{};  // no more chunks can be had
    std::atomic<bool> complained{};
    std::atomic<std::uint64_t> early_drops{};  // events lost before there was a file to count them in
    std::atomic<pid_t> pid{};                  // a child of vfork shares all this and is another process
    std::atomic_flag attaching{};
    std::atomic<bool> high_descriptor_noted{};
    pthread_key_t key{};
    bool have_key{};
    bool anonymous{};
    std::int64_t clock_skew_ns{};
    HashKey anonymise_key{};
    // Chunks of threads that ended, with room left.
    static constexpr int spare_capacity = 64;
    std::atomic<format::ChunkHeader*> spare[spare_capacity] = {};
};
constinit Process process;

void map_alive_word() {
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    ::madvise(page, 4096, MADV_WIPEONFORK);
    process.alive = static_cast<std::uint32_t*>(page);
    *process.alive = 1;
    process_tracer.alive = process.alive;
}

std::uint64_t realtime_ns() { return clock_ns(CLOCK_REALTIME) + static_cast<std::uint64_t>(process.clock_skew_ns); }

void begin_chunk(ThreadStream& stream, format::ChunkHeader* chunk, std::size_t used_bytes) {
    stream.chunk = chunk;
    stream.cursor = reinterpret_cast<std::byte*>(chunk) + used_bytes;
    stream.end = reinterpret_cast<std::byte*>(chunk) + chunk->size_bytes;
    // With call sites every event goes the long way.
    stream.limit = process_tracer.call_site == nullptr ? stream.end - format::codec::longest_event : nullptr;
}

void leave_chunk(ThreadStream& stream) {
    stream.chunk = nullptr;
    stream.cursor = stream.end = stream.limit = nullptr;
}

std::size_t mapped_bytes_of(const ThreadStream& stream) {
    return static_cast<std::size_t>(stream.end - reinterpret_cast<const std::byte*>(stream.chunk));
}

void unmap_chunk(format::ChunkHeader* chunk, std::size_t bytes) {
    NodeFile::release(chunk, bytes);
    process.mapped_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

void store_sample(format::ChunkHeader* chunk) {
    // Torn by a kill, the sample must not look whole: 0 while it changes.
    __atomic_store_n(&chunk->sample_monotonic_ns, 0, __ATOMIC_RELEASE);
    chunk->sample_tick = ticks(process_tracer.use_tsc);
    const std::uint64_t monotonic = clock_ns(CLOCK_MONOTONIC);
    chunk->sample_realtime_ns = realtime_ns();
    __atomic_store_n(&chunk->sample_monotonic_ns, monotonic, __ATOMIC_RELEASE);
}

/// What is in the chunk before `end` gets a checksum; more may follow. Whenever the process is killed, the chunk is sealed or not.
void seal(format::ChunkHeader* chunk, const std::byte* end) {
    __atomic_store_n(&chunk->sealed_bytes, 0, __ATOMIC_RELAXED);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    store_sample(chunk);
    format::ChunkHeader sealed = *chunk;
    sealed.sealed_bytes = static_cast<std::uint32_t>(end - reinterpret_cast<const std::byte*>(chunk));
    chunk->checksum = format::checksum_of_chunk(sealed, chunk);
    __atomic_store_n(&chunk->sealed_bytes, sealed.sealed_bytes, __ATOMIC_RELEASE);
}

std::byte* make_room(ThreadStream& stream, std::size_t size);

/// Aligned room for a meta record of `size` bytes; null when there is none.
std::byte* begin_record(ThreadStream& stream, std::size_t size) {
    if (!has_room(stream, size + 8) || *process_tracer.alive == 0) {
        if (make_room(stream, size + 8) == nullptr) return nullptr;
    }
    while (reinterpret_cast<std::uintptr_t>(stream.cursor) % 8 != 0) *stream.cursor++ = std::byte{format::padding_tag};
    return stream.cursor;
}

/// Room for a record with text; null when there is none. The caller fills everything but the kind and calls commit().
template <typename Record>
Record* begin_meta(ThreadStream& stream, std::size_t text_bytes) {
    const std::size_t size = (sizeof(Record) + text_bytes + 15) / 16 * 16;
    std::byte* const place = begin_record(stream, size);
    if (place == nullptr) return nullptr;
    auto* record = reinterpret_cast<Record*>(place);
    record->size_bytes = static_cast<std::uint32_t>(size);
    return record;
}

template <typename Record>
void commit(ThreadStream& stream, Record* record) {
    const std::size_t size = record->size_bytes;
    __atomic_store_n(&record->kind, Record::record_kind, __ATOMIC_RELEASE);
    stream.cursor += size;
}

template <typename Record>
char* text_of(Record* record) {
    return reinterpret_cast<char*>(record) + sizeof(Record);
}

void write_stream_record(ThreadStream& stream) {
    if (auto* record = begin_meta<format::StreamRecord>(stream, 0)) {
        record->stream = stream.stream;
        record->thread = static_cast<std::uint32_t>(raw::thread_id());
        record->tick = ticks(process_tracer.use_tsc);
        stream.previous = {record->tick >> time_shift, 0};
        stream.contexts = {};
        commit(stream, record);
    }
}

void describe_process(ThreadStream& stream) {
    const Scratch scratch;
    char* const executable = scratch.text();
    const ssize_t length = executable != nullptr ? ::readlink("/proc/self/exe", executable, path_capacity) : 0;
    const std::size_t bytes = length > 0 ? shown_path(executable, static_cast<std::size_t>(length), path_capacity) : 0;
    if (auto* record = begin_meta<format::ProcessRecord>(stream, bytes)) {
        record->image = process.image;
        record->parent_image = process.parent_image;
        record->pid = static_cast<std::uint32_t>(raw::process_id());
        record->ppid = static_cast<std::uint32_t>(::getppid());
        record->start_tick = process.start_tick;
        if (bytes != 0) std::memcpy(text_of(record), executable, bytes);
        commit(stream, record);
    }
    if (auto* record = begin_meta<format::ClockRecord>(stream, 0)) {
        record->tick = ticks(process_tracer.use_tsc);
        record->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
        record->realtime_ns = realtime_ns();
        commit(stream, record);
    }
}

void name_image() {
    process.start_tick = ticks(process_tracer.use_tsc);
    process.pid.store(raw::process_id());
    process.image = (static_cast<std::uint64_t>(process.pid.load()) << 32) | ((process.start_tick >> 8) & 0xffff'ffffU);
}

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

/// In a child of fork, on the first event, which goes into `stream`: the parent's chunks are not mapped here. This thread is
/// the only one.
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

/// While it lives, no signal handler runs in this thread but for what the thread itself does wrong: it might fork, and its
/// child return into what we were doing.
class NoSignals {
public:
    NoSignals() {
        std::uint64_t held = ~std::uint64_t{0};
        for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
            held &= ~(std::uint64_t{1} << (own - 1));
        raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::word(&held), raw::word(&before_), sizeof before_);
    }
    ~NoSignals() { raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::word(&before_), 0, sizeof before_); }
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;

private:
    std::uint64_t before_ = 0;
};

/// `may_wait`: false where this thread itself may be the one that is waited for.
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

bool take_spare(ThreadStream& stream, std::size_t size) {
    for (auto& slot : process.spare) {
        format::ChunkHeader* chunk = slot.exchange(nullptr);
        if (chunk == nullptr) continue;
        begin_chunk(stream, chunk, chunk->sealed_bytes);
        __atomic_store_n(&chunk->sealed_bytes, 0, __ATOMIC_RELEASE);
        if (has_room(stream, size + 2 * sizeof(format::StreamRecord))) return true;
        seal(chunk, stream.cursor);
        unmap_chunk(chunk, chunk->size_bytes);
        leave_chunk(stream);
    }
    return false;
}

bool take_new_chunk(ThreadStream& stream, bool first_of_thread) {
    const std::uint32_t before = process.chunks.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t mapped = process.mapped_bytes.load(std::memory_order_relaxed);
    const std::size_t wanted = chunk_bytes(process.limits, mapped, before, first_of_thread);
    NodeFile::Chunk fresh = process.file.allocate(wanted, process.limits.quota_bytes);
    // What is left of the quota, or of the disk, may do for a smaller one.
    if (fresh.header == nullptr && wanted > format::chunk_alignment)
        fresh = process.file.allocate(format::chunk_alignment, process.limits.quota_bytes);
    if (fresh.header == nullptr) {
        process.exhausted.store(true);
        const std::uint64_t others =
            __atomic_fetch_add(&process.file.header()->disabled_processes, 1, __ATOMIC_RELAXED);
        if (fresh.error == EDQUOT && process.limits.quota_bytes != no_quota) {
            // It is the node's: who finds it used up first speaks for all.
            if (others == 0)
                complain("the trace ends here, further calls of this node are only counted: IOWEIR_QUOTA is used up in",
                         process.file.path(), 0);
        } else {
            const bool gone = fresh.error == ESTALE || fresh.error == ENOENT || fresh.error == ELOOP;
            complain(gone ? "the trace ends here, further calls are only counted: somebody has taken away or replaced"
                          : "the trace ends here, further calls are only counted: no space in",
                     process.file.path(), fresh.error);
        }
        return false;
    }
    process.mapped_bytes.fetch_add(fresh.header->size_bytes, std::memory_order_relaxed);
    format::ChunkHeader* chunk = fresh.header;
    chunk->image = process.image;
    store_sample(chunk);
    __atomic_store_n(&chunk->magic, format::chunk_magic, __ATOMIC_RELEASE);
    begin_chunk(stream, chunk, sizeof(format::ChunkHeader));
    return true;
}

void count_drop() {
    if (process.file.attached())
        __atomic_fetch_add(&process.file.header()->dropped_events, 1, __ATOMIC_RELAXED);
    else
        process.early_drops.fetch_add(1, std::memory_order_relaxed);
}

/// Called by a signal handler that interrupted the writing of `stream` (or of a deputy, by a handler that interrupted a
/// handler). Memory comes from the kernel, for the handler may have interrupted malloc too.
ThreadStream* deputy_of(ThreadStream& stream) {
    const int saved_errno = errno;
    ThreadStream* last = &stream;
    while (last->writing && last->deputy != nullptr) last = last->deputy;
    if (last->writing) {
        void* memory =
            ::mmap(nullptr, sizeof(ThreadStream), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            count_drop();
            last = nullptr;
        } else {
            last->deputy = new (memory) ThreadStream{};
            last = last->deputy;
        }
    }
    errno = saved_errno;
    return last;
}

std::byte* make_room(ThreadStream& stream, std::size_t size) {
    const int saved_errno = errno;
    const NoSignals undisturbed;
    std::byte* place = nullptr;
    if (*process.alive == 0) {
        after_fork(stream);
        stream.in_refill = false;
    }
    const bool nested = stream.in_refill;  // the records written below must not come back here
    stream.in_refill = true;
    if (has_room(stream, size)) {
        place = stream.cursor;
    } else if (!nested && !process.exhausted.load(std::memory_order_relaxed) &&
               attach_file(&stream == &thread_stream)) {
        if (stream.chunk != nullptr) {
            seal(stream.chunk, stream.cursor);
            unmap_chunk(stream.chunk, mapped_bytes_of(stream));
            leave_chunk(stream);
        }
        const bool first = stream.stream == 0;
        if (first) {
            stream.stream = process.next_stream.fetch_add(1) + 1;
            if (process.have_key && &stream == &thread_stream) ::pthread_setspecific(process.key, &stream);
        }
        const bool handed_on = first && take_spare(stream, size);
        if (handed_on || take_new_chunk(stream, first)) {
            write_stream_record(stream);
            if (!process.described.exchange(true)) describe_process(stream);
            if (has_room(stream, size)) place = stream.cursor;
        }
    }
    stream.in_refill = nested;
    errno = saved_errno;
    return place;
}

/// For an event: what finds no room is counted.
std::byte* refill_stream(ThreadStream& stream, std::size_t size) {
    std::byte* place = make_room(stream, size);
    if (place == nullptr) count_drop();
    return place;
}

/// What is left of a stream's chunk goes to the next new thread.
void hand_on(ThreadStream& stream) {
    if (stream.chunk == nullptr) return;
    format::ChunkHeader* chunk = stream.chunk;
    const std::size_t mapped = mapped_bytes_of(stream);
    seal(chunk, stream.cursor);
    leave_chunk(stream);
    stream.stream = 0;
    stream.sequence = 0;
    // One whose tail was given back stays as it is.
    for (auto& slot : process.spare) {
        format::ChunkHeader* expected = nullptr;
        if (mapped == chunk->size_bytes && slot.compare_exchange_strong(expected, chunk)) return;
    }
    unmap_chunk(chunk, mapped);
}

/// At a normal end, disk space that was reserved and is not needed goes back: that of spare chunks, and that of this
/// thread's but for a little, since what runs after us may still make calls.
void give_back_tails(ThreadStream& stream) {
    constexpr std::size_t page = 4096;
    const auto up = [](std::size_t bytes) { return (bytes + page - 1) / page * page; };
    for (auto& slot : process.spare) {
        format::ChunkHeader* chunk = slot.exchange(nullptr);
        if (chunk == nullptr) continue;
        const std::size_t used = up(chunk->sealed_bytes);
        std::size_t mapped = chunk->size_bytes;
        if (used < mapped && process.file.give_back(chunk, mapped - used)) {
            process.mapped_bytes.fetch_sub(mapped - used, std::memory_order_relaxed);
            mapped = used;
        }
        unmap_chunk(chunk, mapped);
    }
    if (stream.chunk == nullptr) return;
    const std::size_t mapped = mapped_bytes_of(stream);
    const std::size_t kept =
        up(static_cast<std::size_t>(stream.cursor - reinterpret_cast<std::byte*>(stream.chunk)) + page / 2);
    if (kept >= mapped || mapped != stream.chunk->size_bytes) return;
    const std::size_t tail = mapped - kept;
    std::byte* const limit = stream.limit;
    stream.end -= tail;
    stream.limit = limit == nullptr ? nullptr : limit - tail;
    if (process.file.give_back(stream.chunk, tail)) {
        process.mapped_bytes.fetch_sub(tail, std::memory_order_relaxed);
    } else {
        stream.end += tail;
        stream.limit = limit;
    }
}

void thread_ended(void* argument) {
    if (*process.alive == 0) return;
    auto& stream = *static_cast<ThreadStream*>(argument);
    stream.writing = true;  // signals still come
    hand_on(stream);
    for (ThreadStream* deputy = stream.deputy; deputy != nullptr; deputy = deputy->deputy) hand_on(*deputy);
    stream.writing = false;
}

// -- paths ------------------------------------------------------------------------------------------------------------

std::uint32_t new_file_number() { return process.next_file.fetch_add(1, std::memory_order_relaxed) + 1; }

std::uint32_t register_path(ThreadStream& of_thread, const char* name) {
    const Scratch scratch;
    char* const path = scratch.text();
    if (path == nullptr) {
        count_drop();
        return 0;
    }
    if (name[0] == '/') {
        const std::size_t bytes = ::strnlen(name, path_capacity - 1);
        std::memcpy(path, name, bytes);
        path[bytes] = '\0';
    } else if (!absolute_path(AT_FDCWD, without_driver_prefix(name), path, path_capacity)) {
        return 0;
    }
    if (is_system_path(path)) return 0;
    std::size_t length = std::strlen(path);
    if (length >= path_capacity) length = path_capacity - 1;
    length = shown_path(path, length, path_capacity);
    // Without room the file keeps a number and no name: its calls go on being counted, as dropped or without a path.
    const std::uint32_t file = new_file_number();
    const Writing writing(process_tracer, of_thread);
    if (writing.stream() == nullptr) return file;
    ThreadStream& stream = *writing.stream();
    auto* record = begin_meta<format::FileRecord>(stream, length);
    if (record == nullptr) return file;
    record->file = file;
    std::memcpy(text_of(record), path, length);
    commit(stream, record);
    return file;
}

bool write_any_record(ThreadStream& of_thread, std::uint16_t kind, const void* fields, std::size_t bytes,
                      const void* more, std::size_t more_bytes) {
    const Writing writing(process_tracer, of_thread);
    if (writing.stream() == nullptr) return false;
    ThreadStream& stream = *writing.stream();
    auto* const record =
        begin_meta<format::FinalizeRecord>(stream, bytes + more_bytes - sizeof(format::FinalizeRecord));
    if (record == nullptr) return false;
    constexpr std::size_t prefix = offsetof(format::FinalizeRecord, tick);  // kind and size, which all records have
    auto* const at = reinterpret_cast<std::byte*>(record);
    std::memcpy(at + prefix, static_cast<const std::byte*>(fields) + prefix, bytes - prefix);
    if (more_bytes != 0) std::memcpy(at + bytes, more, more_bytes);
    const std::uint32_t size = record->size_bytes;
    __atomic_store_n(&record->kind, kind, __ATOMIC_RELEASE);
    stream.cursor += size;
    return true;
}

const char* shown_note_path(const char* path, char* out) {
    if (path == nullptr || path[0] == '\0') return path;
    std::snprintf(out, path_capacity, "%s", path);
    shown_path(out, std::strlen(out), path_capacity);
    return out;
}

/// Words of a note: what stands in quotes, or looks like a path, is shown as one.
const char* shown_text(const char* text, char* out) {
    const Scratch scratch;
    char* const name = scratch.text();
    if (text == nullptr || name == nullptr) return nullptr;
    std::size_t used = 0;
    for (const char* at = text; *at != '\0';) {
        const bool quoted = at != text && at[-1] == '"' && std::strchr(at, '"') != nullptr;
        const std::size_t length = std::strcspn(at, quoted ? "\"" : " \"");
        const std::string_view word(at, length != 0 ? length : 1);
        std::size_t bytes = word.size() < path_capacity ? word.size() : path_capacity - 1;
        std::memcpy(name, word.data(), bytes);
        if (quoted || word.find('/') != std::string_view::npos) bytes = shown_path(name, bytes, path_capacity);
        if (used + bytes >= path_capacity) break;
        std::memcpy(out + used, name, bytes);
        used += bytes;
        at += word.size();
    }
    out[used] = '\0';
    return out;
}

/// A record whose text is a path, a zero byte and words; `fill` gives it its fields. What cannot be made anonymous is not written.
template <typename Record, typename Fill>
void write_words(const char* path, const char* text, Fill fill) {
    if (!process_tracer.active) return;
    const Writing writing(process_tracer, thread_stream);
    if (writing.stream() == nullptr) return;
    ThreadStream& stream = *writing.stream();
    const Scratch scratch;
    if (process.anonymous) {
        if (scratch.text() == nullptr) return;
        path = shown_note_path(path, scratch.text());
        text = shown_text(text, scratch.text() + path_capacity);
    }
    const std::size_t path_bytes = path != nullptr ? std::strlen(path) : 0;
    const std::size_t text_bytes = text != nullptr ? std::strlen(text) : 0;
    if (auto* record = begin_meta<Record>(stream, path_bytes + 1 + text_bytes)) {
        fill(*record);
        record->tick = ticks(process_tracer.use_tsc);
        if (path_bytes != 0) std::memcpy(text_of(record), path, path_bytes);
        if (text_bytes != 0) std::memcpy(text_of(record) + path_bytes + 1, text, text_bytes);
        commit(stream, record);
    }
}

void write_note(std::uint32_t code, const char* path, std::int64_t value, const char* text) {
    write_words<format::NoteRecord>(path, text, [&](format::NoteRecord& record) {
        record.code = code;
        record.value = value;
    });
}

void write_verdict(const Verdict& verdict) {
    write_words<format::VerdictRecord>(verdict.path, verdict.text, [&](format::VerdictRecord& record) {
        record.outcome = verdict.outcome;
        record.calls = verdict.calls;
        record.bytes = verdict.bytes;
        record.offset = verdict.offset;
    });
}

void write_engine(const char* path, const format::EngineFigures<std::int64_t>& figures) {
    write_words<format::EngineRecord>(path, "", [&](format::EngineRecord& record) { record.figures = figures; });
}

void write_rank(int rank, int ranks, const char* mpi_version) {
    if (!process_tracer.active) return;
    const Writing writing(process_tracer, thread_stream);
    if (writing.stream() == nullptr) return;
    ThreadStream& stream = *writing.stream();
    const std::size_t bytes = std::strlen(mpi_version);
    if (auto* record = begin_meta<format::RankRecord>(stream, bytes)) {
        record->rank = static_cast<std::uint32_t>(rank);
        record->ranks = static_cast<std::uint32_t>(ranks);
        record->tick = ticks(process_tracer.use_tsc);
        std::memcpy(text_of(record), mpi_version, bytes);
        commit(stream, record);
    }
    sample_clock(stream);
}

template <typename Record>
void write_moment() {
    const Writing writing(process_tracer, thread_stream);
    if (writing.stream() == nullptr) return;
    ThreadStream& stream = *writing.stream();
    if (auto* record = begin_meta<Record>(stream, 0)) {
        record->tick = ticks(process_tracer.use_tsc);
        commit(stream, record);
    }
    sample_clock(stream);
}

void write_finalize() {
    if (!process_tracer.active) return;
    align_clock(true);
    write_moment<format::FinalizeRecord>();
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
    process_tracer.register_file = register_path;
    process_tracer.new_file_number = new_file_number;
    process_tracer.write_record = write_any_record;
    process_tracer.note = write_note;
    process_tracer.verdict = write_verdict;
    process_tracer.did = write_engine;
    process_tracer.rank = write_rank;
    process_tracer.finalize = write_finalize;
    process_tracer.deputy = deputy_of;
    process.clock_skew_ns = settings.test_clock_skew_ns;
    set_reference_clock(settings.clock, settings.test_clock_skew_ns == 0);
    if (settings.call_sites) {
        if (prepare_call_sites())
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
    write_moment<format::EndRecord>();
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

std::size_t shown_path(char* path, std::size_t length, std::size_t capacity) {
    if (!process.anonymous || length == 0) return length;
    const Scratch scratch;
    char* const name = scratch.text();
    if (name == nullptr) return 0;  // what cannot be made anonymous is not shown
    const std::size_t bytes = anonymise(process.anonymise_key, {path, length}, name, path_capacity);
    const std::size_t kept = bytes < capacity ? bytes : capacity - 1;
    std::memcpy(path, name, kept);
    path[kept] = '\0';
    return kept;
}

bool write_record(const void* record, std::size_t bytes, std::uint16_t kind, const void* text, std::size_t text_bytes) {
    struct Prefix {
        std::uint16_t kind, unused;
        std::uint32_t size_bytes;
    };
    if (!process_tracer.active) return false;
    const Writing writing(process_tracer, thread_stream);
    if (writing.stream() == nullptr) return false;
    ThreadStream& stream = *writing.stream();
    const std::size_t size = (bytes + text_bytes + 15) / 16 * 16;
    std::byte* const place = begin_record(stream, size);
    if (place == nullptr) return false;
    std::memcpy(place + sizeof(Prefix), static_cast<const std::byte*>(record) + sizeof(Prefix), bytes - sizeof(Prefix));
    if (text_bytes != 0) std::memcpy(place + bytes, text, text_bytes);
    auto* prefix = reinterpret_cast<Prefix*>(place);
    prefix->size_bytes = static_cast<std::uint32_t>(size);
    __atomic_store_n(&prefix->kind, kind, __ATOMIC_RELEASE);
    stream.cursor += size;
    return true;
}

void sample_clock(ThreadStream& stream) {
    if (stream.chunk == nullptr || *process.alive == 0) return;
    // The checksum of a sealed chunk is of its sample, too.
    if (stream.chunk->sealed_bytes == 0) store_sample(stream.chunk);
}

bool owns_descriptors() {
    return *process.alive == 0 || raw::process_id() == process.pid.load(std::memory_order_relaxed);
}

void note_high_descriptor(int fd) {
    if (!process.high_descriptor_noted.exchange(true))
        write_note(static_cast<std::uint32_t>(format::NoteCode::untraced), "", fd,
                   "descriptors above 1048575 are not traced");
}

}  // namespace ioweir::tracer
