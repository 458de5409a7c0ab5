// ThreadStream: where one thread records its calls. The hot path of the tracer, nothing else.
//
// Promises: recording takes no lock, allocates nothing, makes no system call while the chunk has room, and leaves errno
// alone. A record is visible to the reader (another process, after kill -9 too) as soon as its first byte is stored, which
// happens last. A child of fork never writes into its parent's chunk. A signal handler may interrupt recording at any
// point and record calls of its own: they go into the stream's deputy, and nothing is lost or mixed up.
// What does not live here: getting chunks and everything else that is slow (ring/process.cpp), hooks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/ticks.hpp"
#include "format/event_codec.hpp"
#include "ioweir_generated/functions.hpp"
#include "ioweir_generated/records.hpp"

namespace ioweir::tracer {

/// What an enclosing call belongs to. From `stdio` on: libraries above the MPI library; what they call has the origin that
/// it would have without them.
enum class Layer : std::uint8_t { mpi, mpi_io, engine, stdio, hdf5, pnetcdf, netcdf };

inline bool is_library(Layer layer) { return layer >= Layer::stdio; }

/// What `--layers` chooses from; each layer's hooks only forward when its bit is not in Tracer::layers.
enum class LayerBit : std::uint32_t { posix = 1, stdio = 2, mpi_io = 4, hdf5 = 8, pnetcdf = 16, netcdf = 32 };
inline constexpr std::uint32_t all_layers = 63;

class Scope;

/// One enclosing call of this thread. `scope` lies on the thread's stack; a longjmp can leave it behind.
struct Frame {
    const Scope* scope;
    std::uint32_t sequence;
    Layer layer;
};

struct ThreadStream {
    static constexpr int max_depth = 8;

    std::byte* cursor = nullptr;  ///< next record
    std::byte* end = nullptr;     ///< end of the chunk
    std::uint32_t sequence = 0;   ///< of the last call entered
    int depth = 0;
    Frame frames[max_depth] = {};
    std::uint32_t stream = 0;  ///< number in its image, 0: none yet
    bool in_refill = false;
    bool writing = false;  ///< something is being written: whoever finds this set interrupted it
    format::ChunkHeader* chunk = nullptr;
    ThreadStream* deputy = nullptr;  ///< a second stream of the thread, made when it is first needed
    format::codec::State codec = {};
};

/// Events count time in units of 2^time_shift ticks: at most 16 ns with clocks of 1 GHz and above.
inline constexpr std::uint32_t time_shift = 4;

/// The number of the next call. One instruction, so that a signal handler between two of them cannot get the same one.
inline std::uint32_t next_sequence(ThreadStream& stream) {
#if defined(__x86_64__)
    std::uint32_t value = 1;
    __asm__ volatile("xaddl %0, %1" : "+r"(value), "+m"(stream.sequence));
    return value + 1;
#else
    return __atomic_add_fetch(&stream.sequence, 1, __ATOMIC_RELAXED);
#endif
}

/// What the hooks of every library need from the preload's tracer: one instance a process, in the preload.
/// A C-like table because the back ends are separate libraries.
struct Tracer {
    bool active = false;  ///< false: hooks only forward
    /// LayerBits of what is recorded; 0 while `active` is false, so that a hook needs one test only.
    std::uint32_t layers = 0;
    bool use_tsc = false;
    /// Inside MPI_Init of any thread: what MPI's own threads open then is not the application's.
    volatile bool mpi_is_starting = false;
    /// Points at a word the kernel clears in a child of fork (MADV_WIPEONFORK); 1 in the process that mapped it.
    const volatile std::uint32_t* alive = nullptr;
    ThreadStream* (*thread)() = nullptr;
    /// Makes room for `size` bytes; null when there is none (counted as dropped).
    std::byte* (*refill)(ThreadStream& stream, std::size_t size) = nullptr;
    /// Names a new file id (never 0 unless the path is one that is not traced).
    std::uint32_t (*register_file)(ThreadStream& stream, const char* path) = nullptr;
    void (*note)(std::uint32_t code, const char* path, std::int64_t value, const char* text) = nullptr;
    void (*rank)(int rank, int ranks, const char* mpi_version) = nullptr;
    void (*finalize)() = nullptr;
    bool (*has_open)(std::uint64_t device, std::uint64_t inode) = nullptr;
    /// A stream that can be written to while `stream` is being written; null when there is none (counted as dropped).
    ThreadStream* (*deputy)(ThreadStream& stream) = nullptr;
    /// Who called the hook, as a site number; 0 when it cannot be told. Null unless call sites are recorded.
    std::uint32_t (*call_site)() = nullptr;
    /// Bytes of the `index`th of the MPI datatypes at `types`; -1 when they cannot be told (MPI_DATATYPE_NULL). Null until a
    /// back end is there.
    std::int64_t (*mpi_type_bytes)(const void* types, std::size_t index) = nullptr;

    [[nodiscard]] bool traces(LayerBit layer) const { return (layers & static_cast<std::uint32_t>(layer)) != 0; }
};

/// Claims a stream, or its deputy when a signal handler interrupted the writing of it. Without one, null: nothing is written.
class Writing {
public:
    Writing(const Tracer& tracer, ThreadStream& stream) : stream_(stream.writing ? tracer.deputy(stream) : &stream) {
        if (stream_ != nullptr) stream_->writing = true;
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~Writing() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (stream_ != nullptr) stream_->writing = false;
    }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    [[nodiscard]] ThreadStream* stream() const { return stream_; }

private:
    ThreadStream* stream_;
};

/// An enclosing call on the parent stack. Lives on the program's stack, in the hook's frame.
class Scope {
public:
    Scope(ThreadStream& stream, Layer layer, std::uint32_t sequence)
        : stream_(stream), saved_depth_(live_depth(stream, this)), cookie_(cookie_of(sequence)) {
        stream_.depth = saved_depth_;
        if (stream_.depth < ThreadStream::max_depth) stream_.frames[stream_.depth] = {this, sequence, layer};
        ++stream_.depth;
    }
    ~Scope() {
        stream_.depth = saved_depth_;
        cookie_ = 0;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    /// Depth without the frames that a longjmp left behind: those below the present stack position (`inner` is the
    /// address of something in the present frame; stacks grow down), and those whose cookie was overwritten.
    /// Looks at what may be dead: the address sanitizer would call that an overflow.
    [[gnu::no_sanitize_address]] static int live_depth(const ThreadStream& stream, const void* inner) {
        int depth = stream.depth;
        while (depth > 0) {
            if (depth > ThreadStream::max_depth) return depth;
            const Frame& frame = stream.frames[depth - 1];
            if (static_cast<const void*>(frame.scope) > inner && frame.scope->cookie_ == cookie_of(frame.sequence))
                break;
            --depth;
        }
        return depth;
    }

private:
    static std::uint64_t cookie_of(std::uint32_t sequence) { return 0x10e1'10e1'0000'0000U ^ sequence; }

    ThreadStream& stream_;
    int saved_depth_;
    volatile std::uint64_t cookie_;
};

/// Who makes the call that is about to be recorded, and inside which recorded call.
struct Context {
    std::uint32_t parent = 0;
    format::Origin origin = format::Origin::application;
};

inline Context context_of(ThreadStream& stream, const void* inner) {
    Context context;
    if (stream.depth == 0) [[likely]]
        return context;
    stream.depth = Scope::live_depth(stream, inner);
    const int known = stream.depth < ThreadStream::max_depth ? stream.depth : ThreadStream::max_depth;
    for (int i = 0; i < known; ++i) {
        const Frame& frame = stream.frames[i];
        if (frame.sequence != 0) context.parent = frame.sequence;
        if (!is_library(frame.layer))
            context.origin = frame.layer == Layer::engine ? format::Origin::engine : format::Origin::mpi_library;
    }
    return context;
}

/// True inside an intercepted call of this layer and thread: what a layer calls of itself is not recorded again.
inline bool inside(ThreadStream& stream, Layer layer, const void* inner) {
    if (stream.depth == 0) [[likely]]
        return false;
    stream.depth = Scope::live_depth(stream, inner);
    const int known = stream.depth < ThreadStream::max_depth ? stream.depth : ThreadStream::max_depth;
    for (int i = 0; i < known; ++i)
        if (stream.frames[i].layer == layer) return true;
    return false;
}
inline bool inside_mpi_io(ThreadStream& stream, const void* inner) { return inside(stream, Layer::mpi_io, inner); }

/// Appends one event; its first byte is stored last.
inline void record_event(const Tracer& tracer, ThreadStream& stream, format::Function function, Context context,
                         std::uint32_t sequence, std::uint32_t file, std::uint64_t start, std::uint64_t stop,
                         std::int64_t offset, std::int64_t bytes, bool failed) {
    std::uint32_t site = 0;
    if (tracer.call_site != nullptr) [[unlikely]]
        site = tracer.call_site();  // writes a record of its own when the site is new: before the stream is claimed
    const Writing writing(tracer, stream);
    if (writing.stream() != &stream) [[unlikely]] {
        // The enclosing call is in another stream than this event: only the origin can be said.
        if (writing.stream() == nullptr) return;
        sequence = next_sequence(*writing.stream());
        context.parent = 0;
    }
    ThreadStream& into = *writing.stream();
    // Asked first: a handler that is the first to record in a child of fork leaves no stale cursor behind.
    const bool alive = *tracer.alive != 0;
    if (!alive || static_cast<std::size_t>(into.end - into.cursor) < format::codec::longest_event) [[unlikely]] {
        if (tracer.refill(into, format::codec::longest_event) == nullptr) return;
    }
    format::EventFields event;
    event.function = static_cast<std::uint16_t>(function);
    event.origin = static_cast<std::uint8_t>(context.origin);
    event.failed = failed;
    event.file = file;
    event.sequence = sequence;
    event.parent = context.parent;
    event.start = start >> time_shift;
    event.end = stop >> time_shift;
    event.offset = offset;
    event.bytes = bytes;
    event.site = site;
    into.cursor = format::codec::encode(into.codec, event, into.cursor);
}

}  // namespace ioweir::tracer
