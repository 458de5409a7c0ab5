// ThreadStream: where one thread records its calls. The hot path of the tracer, nothing else.
//
// Promises: recording takes no lock, allocates nothing, makes no system call while the chunk has room, and leaves errno
// alone. A record is visible to the reader (another process, after kill -9 too) as soon as its first byte is stored, which
// happens last. A child of fork never writes into its parent's chunk, a signal handler's neither. A signal handler may
// interrupt recording at any point and record calls of its own: they go into the stream's deputy, and nothing is lost or
// mixed up.
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
/// With it, what every call inside wants to know, so that it need not look at the frames outside.
struct Frame {
    const Scope* scope;
    std::uint32_t sequence;  ///< 0: the call is not recorded
    std::uint32_t parent;    ///< sequence of the innermost recorded call, this one included; 0: none
    std::uint32_t layers;    ///< bit 1 << layer, of this call and those around it
    format::Origin origin;   ///< of the calls inside
};

/// What the hot path needs lies in the first cache line.
struct alignas(64) ThreadStream {
    static constexpr int max_depth = 8;

    std::byte* cursor = nullptr;  ///< next record
    std::byte* limit = nullptr;   ///< while cursor is below it, an event may be recorded without asking anyone
    std::uint32_t sequence = 0;   ///< of the last call entered
    int depth = 0;
    format::codec::Previous previous = {};
    bool writing = false;  ///< something is being written: whoever finds this set interrupted it
    bool in_refill = false;
    std::uint32_t stream = 0;  ///< number in its image, 0: none yet
    std::byte* end = nullptr;  ///< of the chunk
    format::codec::Contexts contexts = {};
    Frame frames[max_depth] = {};
    format::ChunkHeader* chunk = nullptr;
    ThreadStream* deputy = nullptr;  ///< a second stream of the thread, made when it is first needed
};

/// Signed, because in a child of fork a cursor may lie anywhere behind the end (process.cpp, retire()).
inline bool has_room(const ThreadStream& stream, std::size_t bytes) {
    return stream.end - stream.cursor >= static_cast<std::ptrdiff_t>(bytes);
}

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
struct alignas(64) Tracer {
    bool active = false;  ///< false: hooks only forward
    /// LayerBits of what is recorded; 0 while `active` is false, so that a hook needs one test only.
    std::uint32_t layers = 0;
    bool use_tsc = false;
    /// Inside MPI_Init of any thread: what MPI's own threads open then is not the application's.
    volatile bool mpi_is_starting = false;
    /// Points at a word the kernel clears in a child of fork (MADV_WIPEONFORK); 1 in the process that mapped it.
    const volatile std::uint32_t* alive = nullptr;
    /// Where thread_stream lies, from the thread pointer: the same for every thread, since its TLS model is initial-exec.
    std::ptrdiff_t thread_offset = 0;
    /// append() below, which all libraries share: its instructions are in the cache once.
    void (*append)(const Tracer& tracer, std::uint64_t key, std::uint64_t start, std::uint64_t stop,
                   std::int64_t offset, std::int64_t bytes, std::uint64_t order) = nullptr;
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

    /// The calling thread's stream, without a call.
    [[nodiscard]] ThreadStream* thread() const {
        return reinterpret_cast<ThreadStream*>(static_cast<std::byte*>(__builtin_thread_pointer()) + thread_offset);
    }
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
        : stream_(stream), saved_depth_(0), cookie_(cookie_of(sequence)) {
        if (stream.depth == 0) [[likely]] {
            stream.frames[0] = {this, sequence, sequence, 1U << static_cast<unsigned>(layer),
                                inner_origin(layer, format::Origin::application)};
            stream.depth = 1;
        } else {
            enter_inner(layer, sequence);
        }
    }
    ~Scope() {
        stream_.depth = saved_depth_;
        cookie_ = 0;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    /// Whether the call of this frame is still there: not if a longjmp left it behind. Then it lies below the present
    /// stack position (`inner` is the address of something in the present frame; stacks grow down), or its cookie was
    /// overwritten. Looks at what may be dead: the address sanitizer would call that an overflow.
    [[gnu::no_sanitize_address]] static bool lives(const Frame& frame, const void* inner) {
        return static_cast<const void*>(frame.scope) > inner && frame.scope->cookie_ == cookie_of(frame.sequence);
    }
    /// Depth without the frames that were left behind.
    static int live_depth(const ThreadStream& stream, const void* inner) {
        int depth = stream.depth;
        while (depth > 0 && depth <= ThreadStream::max_depth && !lives(stream.frames[depth - 1], inner)) --depth;
        return depth;
    }

private:
    [[gnu::noinline]] void enter_inner(Layer layer, std::uint32_t sequence) {
        saved_depth_ = live_depth(stream_, this);
        if (saved_depth_ < ThreadStream::max_depth) {
            Frame frame{this, sequence, sequence, 0, format::Origin::application};
            if (saved_depth_ > 0) {
                const Frame& outer = stream_.frames[saved_depth_ - 1];
                frame.layers = outer.layers;
                frame.origin = outer.origin;
                if (sequence == 0) frame.parent = outer.parent;
            }
            frame.layers |= 1U << static_cast<unsigned>(layer);
            frame.origin = inner_origin(layer, frame.origin);
            stream_.frames[saved_depth_] = frame;
        }
        stream_.depth = saved_depth_ + 1;
    }
    static format::Origin inner_origin(Layer layer, format::Origin outer) {
        return is_library(layer)        ? outer
               : layer == Layer::engine ? format::Origin::engine
                                        : format::Origin::mpi_library;
    }
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

/// The innermost call that encloses the present one and is still there; null without any.
[[gnu::noinline]] inline const Frame* enclosing(ThreadStream& stream, const void* inner) {
    stream.depth = Scope::live_depth(stream, inner);
    if (stream.depth == 0) return nullptr;
    return &stream.frames[(stream.depth < ThreadStream::max_depth ? stream.depth : ThreadStream::max_depth) - 1];
}

inline Context context_of(ThreadStream& stream, const void* inner) {
    if (stream.depth == 0) [[likely]]
        return {};
    const Frame* frame = enclosing(stream, inner);
    if (frame == nullptr) return {};
    return {frame->parent, frame->origin};
}

/// True inside an intercepted call of this layer and thread: what a layer calls of itself is not recorded again.
inline bool inside(ThreadStream& stream, Layer layer, const void* inner) {
    if (stream.depth == 0) [[likely]]
        return false;
    const Frame* frame = enclosing(stream, inner);
    return frame != nullptr && (frame->layers >> static_cast<unsigned>(layer) & 1U) != 0;
}
inline bool inside_mpi_io(ThreadStream& stream, const void* inner) { return inside(stream, Layer::mpi_io, inner); }

/// Function, origin and file as one word, as the codec has them.
inline std::uint64_t event_key(format::Function function, format::Origin origin, std::uint32_t file) {
    return format::codec::key_of(static_cast<std::uint16_t>(function), static_cast<std::uint8_t>(origin), file);
}

/// Any event. Claims the stream, or its deputy.
[[gnu::noinline]] inline void record_slowly(const Tracer& tracer, format::EventFields event) {
    if (tracer.call_site != nullptr)
        event.site =
            tracer.call_site();  // writes a record of its own when the site is new: before the stream is claimed
    ThreadStream& stream = *tracer.thread();
    const Writing writing(tracer, stream);
    if (writing.stream() == nullptr) return;
    ThreadStream& into = *writing.stream();
    if (&into != &stream) {
        // The enclosing call is in another stream than this event: only the origin can be said.
        event.sequence = next_sequence(into);
        event.parent = 0;
    }
    // Asked while the stream is ours: a handler that is the first to record in a child of fork leaves no stale cursor.
    const bool room = has_room(into, format::codec::longest_event);
    if ((*tracer.alive != 0 && room) || tracer.refill(into, format::codec::longest_event) != nullptr)
        into.cursor = format::codec::encode(into.previous, into.contexts, event, into.cursor);
}

/// append() ends here when it cannot do it: the stream is being written (this is a signal handler that interrupted that),
/// a longjmp has left frames behind, there is no room, this is a child of fork, or something is rare about the event.
/// It takes append()'s arguments, so that a jump leads here and nothing has to be kept.
[[gnu::noinline]] inline void append_slowly(const Tracer& tracer, std::uint64_t key, std::uint64_t start,
                                            std::uint64_t stop, std::int64_t offset, std::int64_t bytes,
                                            std::uint64_t order) {
    ThreadStream& stream = *tracer.thread();
    Context context{static_cast<std::uint32_t>(order), static_cast<format::Origin>(key >> 16 & 0xffU)};
    if (order >> 32 == 0) context = context_of(stream, __builtin_frame_address(0));
    record_slowly(tracer,
                  {.function = static_cast<std::uint16_t>(key),
                   .origin = static_cast<std::uint8_t>(context.origin),
                   .failed = false,
                   .file = static_cast<std::uint32_t>(key >> 24),
                   .sequence = order >> 32 != 0 ? static_cast<std::uint32_t>(order >> 32) : next_sequence(stream),
                   .parent = context.parent,
                   .start = start >> time_shift,
                   .end = stop >> time_shift,
                   .offset = offset,
                   .bytes = bytes});
}

/// The hot path: appends one event of a call that succeeded; its first byte is stored last.
/// `order`: sequence in the upper half, parent in the lower; 0 for a call that made no other (a leaf): its sequence, parent
/// and origin are found here, and `key` says Origin::application. What costs here is cache lines, because the system call
/// before has filled the cache with other things: of code, and of data (the tracer's first, the stream's first, a context,
/// the chunk). So nothing is called, and whatever is rare jumps away.
[[gnu::noinline]] inline void append(const Tracer& tracer, std::uint64_t key, std::uint64_t start, std::uint64_t stop,
                                     std::int64_t offset, std::int64_t bytes, std::uint64_t order) {
    ThreadStream& stream = *tracer.thread();
    // Asked while the stream is ours: a handler that is the first to record in a child of fork leaves no stale cursor.
    if (stream.writing) [[unlikely]]
        return append_slowly(tracer, key, start, stop, offset, bytes, order);
    stream.writing = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::byte* end = nullptr;
    if (*tracer.alive != 0 && stream.cursor < stream.limit) [[likely]] {
        auto sequence = static_cast<std::uint32_t>(order >> 32);
        auto parent = static_cast<std::uint32_t>(order);
        std::uint64_t whole_key = key;
        bool known = true;
        if (sequence == 0) {
            // Not taken before the event is certain to be written here: the number must not be lost.
            sequence = stream.sequence + 1;
            if (stream.depth != 0) {
                const auto top = static_cast<unsigned>(stream.depth) - 1;
                const Frame& frame = stream.frames[top % ThreadStream::max_depth];
                known = top < ThreadStream::max_depth && Scope::lives(frame, __builtin_frame_address(0));
                parent = frame.parent;
                whole_key |= static_cast<std::uint64_t>(frame.origin) << 16;
            }
        }
        if (known) [[likely]]
            end = format::codec::encode_common(stream.previous, stream.contexts, whole_key, start >> time_shift,
                                               stop >> time_shift, offset, bytes, sequence,
                                               parent != 0 ? sequence - parent : 0, stream.cursor);
    }
    if (end == nullptr) [[unlikely]] {
        stream.writing = false;
        return append_slowly(tracer, key, start, stop, offset, bytes, order);
    }
    if (order >> 32 == 0) stream.sequence = static_cast<std::uint32_t>(stream.previous.sequence);
    stream.cursor = end;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    stream.writing = false;
}

/// One call that makes no other and succeeded.
inline void record_leaf(const Tracer& tracer, format::Function function, std::uint32_t file, std::uint64_t start,
                        std::uint64_t stop, std::int64_t offset, std::int64_t bytes) {
    append(tracer, event_key(function, format::Origin::application, file), start, stop, offset, bytes, 0);
}

/// Records one call. `bytes` of a call that failed: minus the error.
inline void record_event(const Tracer& tracer, ThreadStream&, format::Function function, Context context,
                         std::uint32_t sequence, std::uint32_t file, std::uint64_t start, std::uint64_t stop,
                         std::int64_t offset, std::int64_t bytes, bool failed) {
    if (failed) [[unlikely]]
        return record_slowly(tracer, {.function = static_cast<std::uint16_t>(function),
                                      .origin = static_cast<std::uint8_t>(context.origin),
                                      .failed = true,
                                      .file = file,
                                      .sequence = sequence,
                                      .parent = context.parent,
                                      .start = start >> time_shift,
                                      .end = stop >> time_shift,
                                      .offset = offset,
                                      .bytes = bytes});
    tracer.append(tracer, event_key(function, context.origin, file), start, stop, offset, bytes,
                  static_cast<std::uint64_t>(sequence) << 32 | context.parent);
}

}  // namespace ioweir::tracer
