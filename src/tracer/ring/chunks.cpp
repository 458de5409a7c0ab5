// How a thread gets room in the node's trace file: chunks are taken, sealed, handed on and given back.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>

#include "base/raw_syscall.hpp"
#include "format/seal.hpp"
#include "tracer/ring/process_state.hpp"

namespace ioweir::tracer {

std::size_t mapped_bytes_of(const ThreadStream& stream) {
    return static_cast<std::size_t>(stream.end - reinterpret_cast<const std::byte*>(stream.chunk));
}

void store_sample(format::ChunkHeader* chunk) {
    // Torn by a kill, the sample must not look whole: 0 while it changes.
    __atomic_store_n(&chunk->sample_monotonic_ns, 0, __ATOMIC_RELEASE);
    chunk->sample_tick = ticks(process_tracer.use_tsc);
    const std::uint64_t monotonic = clock_ns(CLOCK_MONOTONIC);
    chunk->sample_realtime_ns = realtime_ns();
    __atomic_store_n(&chunk->sample_monotonic_ns, monotonic, __ATOMIC_RELEASE);
}

void seal(format::ChunkHeader* chunk, const std::byte* end) {
    __atomic_store_n(&chunk->sealed_bytes, 0, __ATOMIC_RELAXED);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    store_sample(chunk);
    format::ChunkHeader sealed = *chunk;
    sealed.sealed_bytes = static_cast<std::uint32_t>(end - reinterpret_cast<const std::byte*>(chunk));
    chunk->checksum = format::checksum_of_chunk(sealed, chunk);
    __atomic_store_n(&chunk->sealed_bytes, sealed.sealed_bytes, __ATOMIC_RELEASE);
}

namespace {

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

void unmap_chunk(format::ChunkHeader* chunk, std::size_t bytes) {
    NodeFile::release(chunk, bytes);
    process.mapped_bytes.fetch_sub(bytes, std::memory_order_relaxed);
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

}  // namespace

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

std::byte* refill_stream(ThreadStream& stream, std::size_t size) {
    std::byte* place = make_room(stream, size);
    if (place == nullptr) count_drop();
    return place;
}

namespace {

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

}  // namespace

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

void sample_clock(ThreadStream& stream) {
    if (stream.chunk == nullptr || *process.alive == 0) return;
    // The checksum of a sealed chunk is of its sample, too.
    if (stream.chunk->sealed_bytes == 0) store_sample(stream.chunk);
}

}  // namespace ioweir::tracer
