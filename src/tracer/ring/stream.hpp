// ThreadStream: where one thread records its calls. The hot path of the tracer, nothing else.
//
// Promises: recording takes no lock, allocates nothing, makes no system call while the chunk has room, and leaves errno
// alone. A record is visible to the reader (another process, after kill -9 too) as soon as its first byte is stored, which
// happens last. A child of fork never writes into its parent's chunk, a signal handler's neither. A signal handler may
// interrupt recording at any point and record calls of its own: they go into the stream's deputy, and nothing is lost or
// mixed up.
// What does not live here: getting chunks (ring/chunks.cpp) and everything else that is slow (ring/process.cpp), hooks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/ticks.hpp"
#include "format/event_codec.hpp"
#include "ioweir_generated/functions.hpp"
#include "ioweir_generated/layers.hpp"
#include "ioweir_generated/records.hpp"
#include "tracer/ring/named_files.hpp"

namespace ioweir::tracer {

/// What an enclosing call belongs to. From `stdio` on: libraries above the MPI library; what they call has the origin that
/// it would have without them.
enum class Layer : std::uint8_t { mpi, mpi_io, engine, stdio, hdf5, pnetcdf, netcdf };

inline bool is_library(Layer layer) { return layer >= Layer::stdio; }

using format::all_layers;
using format::LayerBit;

/// What verification found of writes to a file: a VerdictRecord.
struct Verdict {
    std::uint32_t outcome = 0;  ///< VerifyOutcome
    std::int64_t calls = 0;     ///< 0: not told apart
    std::int64_t bytes = 0;
    std::int64_t offset = -1;  ///< of the first byte; -1: unknown
    const char* path = nullptr;
    const char* text = nullptr;  ///< why
};

/// One enclosing call of this thread, and what every call inside wants to know, so that it need not look at the frames
/// outside. `scope` lies on the thread's stack; a longjmp can leave it behind.
struct Frame {
    const volatile std::uint64_t* scope;  ///< holds cookie_of(parent) while the call lasts
    std::uint32_t parent;                 ///< sequence of the innermost recorded call, this one included; 0: none
    std::uint8_t layers;                  ///< bit 1 << layer, of this call and those around it
    alignas(2) format::Origin origin;     ///< of the calls inside; two bytes side by side would be copied from memory
};

/// What the hot path needs, with the outermost enclosing call, lies in the first cache line.
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
    Frame frames[max_depth] = {};
    std::byte* end = nullptr;  ///< of the chunk
    format::ChunkHeader* chunk = nullptr;
    ThreadStream* deputy = nullptr;  ///< a second stream of the thread, made when it is first needed
    format::codec::Contexts contexts = {};
    std::uint64_t waited_until = 0;  ///< tick: what was recorded of waiting in MPI ends there
};
static_assert(offsetof(ThreadStream, frames) + sizeof(Frame) == 64);

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
    /// A number of the file ids' that nothing has yet.
    std::uint32_t (*new_file_number)() = nullptr;
    /// Writes a meta record: its fields, of which `kind` and `size_bytes` are filled in here, and what stands in the place of text.
    /// False when there is no room (counted as dropped).
    bool (*write_record)(ThreadStream& stream, std::uint16_t kind, const void* fields, std::size_t bytes,
                         const void* more, std::size_t more_bytes) = nullptr;
    void (*verdict)(const Verdict& verdict) = nullptr;
    void (*weighed)(const char* path, format::CallKind call, format::Chosen chosen,
                    const format::WeighedFigures<std::int64_t>& figures) = nullptr;
    void (*chosen)(const char* series, const char* words, format::ChoiceStep step, std::uint32_t ranks,
                   const format::ChosenFigures<std::int64_t>& figures) = nullptr;
    void (*did)(const char* path, const format::EngineFigures<std::int64_t>& figures) = nullptr;
    void (*note)(std::uint32_t code, const char* path, std::int64_t value, const char* text) = nullptr;
    void (*rank)(int rank, int ranks, const char* mpi_version) = nullptr;
    void (*finalize)() = nullptr;
    bool (*has_open)(std::uint64_t device, std::uint64_t inode) = nullptr;
    const std::uint32_t* engine_descriptors_gone = nullptr;  ///< see tracer/ring/descriptors.hpp
    /// Called before a file of this name is opened, asked about or changed; null as long as nobody has to know. Atomic.
    void (*before_path)(int directory, const char* path) = nullptr;
    /// A stream that can be written to while `stream` is being written; null when there is none (counted as dropped).
    ThreadStream* (*deputy)(ThreadStream& stream) = nullptr;
    /// Who called the hook, as a site number; 0 when it cannot be told. Null unless call sites are recorded.
    std::uint32_t (*call_site)() = nullptr;
    /// Bytes of the `index`th of the MPI datatypes at `types`; -1 when they cannot be told (MPI_DATATYPE_NULL). Null until a
    /// back end is there.
    std::int64_t (*mpi_type_bytes)(const void* types, std::size_t index) = nullptr;
    /// Asked around calls that name files; null where no name stands for anything else than its file. Set before the program runs.
    const NamedFiles* named_files = nullptr;
    /// The engine moves the bytes of MPI files: what the MPI library does with a name is meant as it is.
    bool has_engine = false;
    /// The same moment, when the process began: with a second one, how long a tick is.
    std::uint64_t start_tick = 0;
    std::uint64_t start_monotonic_ns = 0;

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

/// An address in the present frame: whatever encloses it lies above (stacks grow down). Costs no frame pointer.
[[gnu::always_inline]] inline const void* stack_position() {
#if defined(__x86_64__)
    const void* position = nullptr;
    __asm__("mov %%rsp, %0" : "=r"(position));
    return position;
#else
    return __builtin_frame_address(0);
#endif
}

inline std::uint64_t cookie_of(std::uint32_t parent) { return 0x10e1'10e1'0000'0000U ^ parent; }
/// Whether the call of this frame is still there: not if a longjmp left it behind. Then it lies below the present
/// stack position (`inner` is the address of something in the present frame), or its cookie was overwritten. Looks at
/// what may be dead: the address sanitizer would call that an overflow.
[[gnu::no_sanitize_address]] inline bool lives(const Frame& frame, const void* inner) {
    return const_cast<const std::uint64_t*>(frame.scope) > inner && *frame.scope == cookie_of(frame.parent);
}

/// The innermost call that encloses the present one and is still there, as many as are kept; null without any. Frames
/// that were left behind are dropped.
[[gnu::noinline]] inline const Frame* live_frame(ThreadStream& stream, const void* inner) {
    while (stream.depth > 0 && stream.depth <= ThreadStream::max_depth &&
           !lives(stream.frames[stream.depth - 1], inner))
        --stream.depth;
    if (stream.depth == 0) return nullptr;
    return &stream.frames[(stream.depth < ThreadStream::max_depth ? stream.depth : ThreadStream::max_depth) - 1];
}
[[gnu::always_inline]] inline const Frame* enclosing(ThreadStream& stream, const void* inner) {
    if (stream.depth == 0) [[likely]]
        return nullptr;
    return live_frame(stream, inner);
}

/// Says that a call is still there: in the hook's frame.
struct Cookie {
    volatile std::uint64_t value;
};

/// An enclosing call on the parent stack, in registers but for its cookie. `outer`: enclosing(), as it is.
class Nesting {
public:
    [[gnu::always_inline]] Nesting(Cookie& cookie, ThreadStream& stream, Layer layer, std::uint32_t sequence,
                                   const Frame* outer)
        : cookie_(cookie), stream_(stream), saved_depth_(outer == nullptr ? 0 : stream.depth) {
        const std::uint32_t parent = sequence == 0 && outer != nullptr ? outer->parent : sequence;
        const auto layers =
            static_cast<std::uint8_t>((outer != nullptr ? outer->layers : 0U) | 1U << static_cast<unsigned>(layer));
        const format::Origin origin =
            inner_origin(layer, outer != nullptr ? outer->origin : format::Origin::application);
        cookie.value = cookie_of(parent);
        if (saved_depth_ < ThreadStream::max_depth) {
            Frame& frame = stream.frames[saved_depth_];
            frame.scope = &cookie.value;
            frame.parent = parent;
            frame.layers = layers;
            frame.origin = origin;
        }
        std::atomic_signal_fence(std::memory_order_seq_cst);  // a handler that sees the depth sees the frame
        stream.depth = saved_depth_ + 1;
    }
    [[gnu::always_inline]] ~Nesting() {
        stream_.depth = saved_depth_;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        cookie_.value = 0;
    }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

private:
    static format::Origin inner_origin(Layer layer, format::Origin outer) {
        return is_library(layer)        ? outer
               : layer == Layer::engine ? format::Origin::engine
                                        : format::Origin::mpi_library;
    }

    Cookie& cookie_;
    ThreadStream& stream_;
    int saved_depth_;
};

/// The same with its cookie.
class Scope {
public:
    Scope(ThreadStream& stream, Layer layer, std::uint32_t sequence)
        : nesting_(cookie_, stream, layer, sequence, enclosing(stream, stack_position())) {}

private:
    Cookie cookie_;
    Nesting nesting_;
};

/// Who makes the call that is about to be recorded, and inside which recorded call.
struct Context {
    std::uint32_t parent = 0;
    format::Origin origin = format::Origin::application;
};

inline Context context_in(const Frame* outer) {
    if (outer == nullptr) [[likely]]
        return {};
    return {outer->parent, outer->origin};
}
inline Context context_of(ThreadStream& stream, const void* inner) { return context_in(enclosing(stream, inner)); }

/// True inside an intercepted call of this layer and thread: what a layer calls of itself is not recorded again.
inline bool is_inside(const Frame* outer, Layer layer) {
    return outer != nullptr && (outer->layers >> static_cast<unsigned>(layer) & 1U) != 0;
}
inline bool inside(ThreadStream& stream, Layer layer, const void* inner) {
    return is_inside(enclosing(stream, inner), layer);
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

/// Ends up here what the hot path cannot do: the stream is being written (this is a signal handler that interrupted that),
/// a longjmp has left frames behind, there is no room, this is a child of fork, or something is rare about the event.
/// These take the arguments of append() and append_leaf(), with times in units, so that a jump leads here and nothing has
/// to be kept.
[[gnu::noinline]] inline void append_slowly(const Tracer& tracer, std::uint64_t key, std::uint64_t start,
                                            std::uint64_t stop, std::int64_t offset, std::int64_t bytes,
                                            std::uint64_t order) {
    record_slowly(tracer, {.function = static_cast<std::uint16_t>(key),
                           .origin = static_cast<std::uint8_t>(key >> 16),
                           .failed = false,
                           .file = static_cast<std::uint32_t>(key >> 24),
                           .sequence = static_cast<std::uint32_t>(order >> 32),
                           .parent = static_cast<std::uint32_t>(order),
                           .start = start,
                           .end = stop,
                           .offset = offset,
                           .bytes = bytes});
}
[[gnu::noinline]] inline std::int64_t append_leaf_slowly(const Tracer& tracer, std::uint64_t key, std::uint64_t start,
                                                         std::uint64_t stop, std::int64_t offset, std::int64_t bytes) {
    constexpr std::uint64_t origin_bits = 0xff'0000;
    ThreadStream& stream = *tracer.thread();
    const Context context = context_of(stream, stack_position());
    append_slowly(tracer, (key & ~origin_bits) | static_cast<std::uint64_t>(context.origin) << 16, start, stop, offset,
                  bytes, static_cast<std::uint64_t>(next_sequence(stream)) << 32 | context.parent);
    return bytes;
}

/// The chunk's next line is in no cache: the kernel has cleared all of the chunk long before. Fetched now, it comes while the program
/// goes on; else the next system call would wait for the store.
[[gnu::always_inline]] inline void prefetch_behind(const std::byte* end) { __builtin_prefetch(end + 64, 1); }

/// The hot path: appends one event of a call that succeeded; its first byte is stored last. What costs here is cache lines,
/// because the system call before has filled the cache with other things (of data: the tracer's first, the stream's first,
/// a context, the chunk), and branches that the processor does not foresee. So nothing is called, what is rare jumps
/// away, and the lengths of fields are computed.
/// `order`: sequence in the upper half, parent in the lower.
[[gnu::noinline]] inline void append(const Tracer& tracer, std::uint64_t key, std::uint64_t start, std::uint64_t stop,
                                     std::int64_t offset, std::int64_t bytes, std::uint64_t order) {
    ThreadStream& stream = *tracer.thread();
    start >>= time_shift;
    stop >>= time_shift;
    if (stream.writing) [[unlikely]]
        return append_slowly(tracer, key, start, stop, offset, bytes, order);
    stream.writing = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Asked while the stream is ours: a handler that is the first to record in a child of fork leaves no stale cursor.
    if (*tracer.alive != 0 && stream.cursor < stream.limit) [[likely]] {
        const auto sequence = static_cast<std::uint32_t>(order >> 32);
        const auto parent = static_cast<std::uint32_t>(order);
        std::byte* const end =
            format::codec::encode_common(stream.previous, stream.contexts, key, start, stop, offset, bytes, sequence,
                                         parent != 0 ? sequence - parent : 0, stream.cursor);
        if (end != nullptr) [[likely]] {
            stream.cursor = end;
            prefetch_behind(end);
            std::atomic_signal_fence(std::memory_order_seq_cst);
            stream.writing = false;
            return;
        }
    }
    stream.writing = false;
    append_slowly(tracer, key, start, stop, offset, bytes, order);
}

/// The same for a call that made no other: sequence, parent and origin are found here, and `key` says Origin::application.
/// Returns `bytes`, so that a hook can end with it.
[[gnu::noinline]] inline std::int64_t append_leaf(const Tracer& tracer, std::uint64_t key, std::uint64_t start,
                                                  std::uint64_t stop, std::int64_t offset, std::int64_t bytes) {
    ThreadStream& stream = *tracer.thread();
    start >>= time_shift;
    stop >>= time_shift;
    if (stream.writing) [[unlikely]]
        return append_leaf_slowly(tracer, key, start, stop, offset, bytes);
    stream.writing = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (*tracer.alive != 0 && stream.cursor < stream.limit) [[likely]] {
        // Not taken before the event is certain to be written here: the number must not be lost.
        const std::uint32_t sequence = stream.sequence + 1;
        std::uint32_t parent_step = 0;
        bool known = true;
        if (stream.depth != 0) {
            const auto top = static_cast<unsigned>(stream.depth) - 1;
            const Frame& frame = stream.frames[top % ThreadStream::max_depth];
            known = top < ThreadStream::max_depth && lives(frame, stack_position());
            parent_step = frame.parent != 0 ? sequence - frame.parent : 0;
            key |= static_cast<std::uint64_t>(frame.origin) << 16;
        }
        if (known) [[likely]] {
            std::byte* const end = format::codec::encode_common(stream.previous, stream.contexts, key, start, stop,
                                                                offset, bytes, sequence, parent_step, stream.cursor);
            if (end != nullptr) [[likely]] {
                stream.sequence = sequence;
                stream.cursor = end;
                prefetch_behind(end);
                std::atomic_signal_fence(std::memory_order_seq_cst);
                stream.writing = false;
                return bytes;
            }
        }
    }
    stream.writing = false;
    return append_leaf_slowly(tracer, key, start, stop, offset, bytes);
}

/// One call that makes no other and succeeded. Returns `bytes`.
inline std::int64_t record_leaf(const Tracer& tracer, format::Function function, std::uint32_t file,
                                std::uint64_t start, std::uint64_t stop, std::int64_t offset, std::int64_t bytes) {
    return append_leaf(tracer, event_key(function, format::Origin::application, file), start, stop, offset, bytes);
}

/// Records one call. `bytes` of a call that failed: minus the error.
[[gnu::always_inline]] inline void record_event(const Tracer& tracer, ThreadStream&, format::Function function,
                                                Context context, std::uint32_t sequence, std::uint32_t file,
                                                std::uint64_t start, std::uint64_t stop, std::int64_t offset,
                                                std::int64_t bytes, bool failed) {
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

/// Records a call that moved fewer bytes than it was asked for, and no file ended there.
inline void record_short(const Tracer& tracer, format::Function function, Context context, std::uint32_t sequence,
                         std::uint32_t file, std::uint64_t start, std::uint64_t stop, std::int64_t offset,
                         std::int64_t bytes, std::uint64_t missing) {
    record_slowly(tracer, {.function = static_cast<std::uint16_t>(function),
                           .origin = static_cast<std::uint8_t>(context.origin),
                           .file = file,
                           .sequence = sequence,
                           .parent = context.parent,
                           .start = start >> time_shift,
                           .end = stop >> time_shift,
                           .offset = offset,
                           .bytes = bytes,
                           .missing = missing});
}

}  // namespace ioweir::tracer
