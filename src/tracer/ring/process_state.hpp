// What the parts of the tracer share within one process: its state, chunks, and how a record gets its place.
// For process.cpp, chunks.cpp and records.cpp only; what others call is in process.hpp and stream.hpp.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "format/event_codec.hpp"
#include "ioweir_generated/records.hpp"
#include "tracer/ring/anonymise.hpp"
#include "tracer/ring/limits.hpp"
#include "tracer/ring/node_file.hpp"
#include "tracer/ring/process.hpp"
#include "tracer/ring/scratch.hpp"
#include "tracer/ring/stream.hpp"

namespace ioweir::tracer {

inline constexpr std::size_t path_capacity = NodeFile::path_capacity;
static_assert(Scratch::bytes == 2 * path_capacity);

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
extern constinit Process process;

// -- process.cpp ------------------------------------------------------------------------------------------------------

std::uint64_t realtime_ns();
void name_image();
/// `may_wait`: false where this thread itself may be the one that is waited for.
bool attach_file(bool may_wait);
void count_drop();
/// In a child of fork, on the first event, which goes into `stream`: the parent's chunks are not mapped here. This thread is
/// the only one.
void after_fork(ThreadStream& stream);

// -- chunks.cpp -------------------------------------------------------------------------------------------------------

std::size_t mapped_bytes_of(const ThreadStream& stream);
void store_sample(format::ChunkHeader* chunk);
/// What is in the chunk before `end` gets a checksum; more may follow. Whenever the process is killed, the chunk is sealed or not.
void seal(format::ChunkHeader* chunk, const std::byte* end);
std::byte* make_room(ThreadStream& stream, std::size_t size);
/// For an event: what finds no room is counted.
std::byte* refill_stream(ThreadStream& stream, std::size_t size);
/// Called by a signal handler that interrupted the writing of `stream` (or of a deputy, by a handler that interrupted a
/// handler). Memory comes from the kernel, for the handler may have interrupted malloc too.
ThreadStream* deputy_of(ThreadStream& stream);
void thread_ended(void* argument);
/// At a normal end, disk space that was reserved and is not needed goes back: that of spare chunks, and that of this
/// thread's but for a little, since what runs after us may still make calls.
void give_back_tails(ThreadStream& stream);

// -- records.cpp ------------------------------------------------------------------------------------------------------

void write_stream_record(ThreadStream& stream);
void describe_process(ThreadStream& stream);
/// Makes the tracer's functions for records those of records.cpp.
void connect_records();
/// The process ends normally.
void write_end();

/// Aligned room for a meta record of `size` bytes; null when there is none.
std::byte* begin_record(ThreadStream& stream, std::size_t size);

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

}  // namespace ioweir::tracer
