// Which file a descriptor stands for, and where the next read() or write() through it begins.
// What does not live here: what a call records (tracer/hooks).
//
// The position belongs to the open file description, which descriptors share after dup(), and other processes after fork().
// It is followed, not asked for: lseek() costs 166 ns here, as much as three recorded calls. What is followed must be right
// or "unknown" (-1), never wrong:
// - Calls on one description at the same time are carried out by the kernel in an order that nobody sees. A call knows its
//   offset only when no other was under way on the description between its begin and its end (Position, below). The sum of
//   all calls is known even then, so that the next call alone knows its offset again.
// - Writes with O_APPEND go to an end that other descriptions move too: unknown.
// - Once another process has the description (fork, a spawned program that inherits it), or the C library reads and writes it
//   for a FILE, or the kernel does asynchronously: unknown for good.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace ioweir::tracer {

inline constexpr int descriptor_capacity = 1 << 20;

/// The position of an open file description and the number of calls that are moving it, in one word.
class Position {
public:
    /// Begins a call that may move the position. The answer belongs to leave...().
    std::uint64_t enter() { return word_.fetch_add(1, std::memory_order_acq_rel); }

    /// Ends a call that moved by `moved` bytes (0: it failed). Where it began, or -1. `fd`: to ask once it is unknown.
    std::int64_t leave(std::uint64_t entered, std::int64_t moved, int fd) {
        const std::uint64_t before =
            word_.fetch_add((static_cast<std::uint64_t>(moved) << shift) - 1, std::memory_order_acq_rel);
        // Nobody else was under way at the begin and at the end, and nobody has moved it between.
        if (before == entered + 1 && (entered & (calls | unknown | shared)) == 0) [[likely]]
            return static_cast<std::int64_t>(entered >> shift);
        if ((before & unknown) == 0) return -1;
        return ask(entered, before + (static_cast<std::uint64_t>(moved) << shift) - 1, moved, fd);
    }
    /// Ends a call after which the position is `offset`, or -1 when that cannot be told.
    void leave_at(std::uint64_t entered, std::int64_t offset);
    /// Ends a call that has moved nobody knows how far.
    void leave_lost() { leave_at(calls, -1); }

    /// Whether no other call was under way when this one began.
    static bool alone(std::uint64_t entered) { return (entered & calls) == 0; }
    void reset() { word_.store(0, std::memory_order_release); }
    /// Others move it from now on.
    void share() { word_.fetch_or(shared, std::memory_order_acq_rel); }
    [[nodiscard]] bool idle() const { return (word_.load(std::memory_order_acquire) & calls) == 0; }
    /// Where a call would begin now; -1 when that cannot be told.
    [[nodiscard]] std::int64_t peek() const {
        const std::uint64_t word = word_.load(std::memory_order_acquire);
        return (word & (calls | unknown | shared)) == 0 ? static_cast<std::int64_t>(word >> shift) : -1;
    }

private:
    static constexpr std::uint64_t calls = 0x7fff;
    static constexpr std::uint64_t unknown = 0x8000;
    static constexpr std::uint64_t shared = 0x1'0000;
    static constexpr int shift = 17;
    static constexpr std::int64_t limit = std::int64_t{1} << 46;  ///< positions beyond are not followed

    std::int64_t ask(std::uint64_t entered, std::uint64_t now, std::int64_t moved, int fd);

    std::atomic<std::uint64_t> word_;
};

/// A call that moves a position, from its begin to its end. An exception (pthread_cancel) may end it.
class Move {
public:
    explicit Move(Position& position) : position_(position), entered_(position.enter()) {}
    ~Move() {
        if (under_way_) [[unlikely]]
            position_.leave_lost();
    }
    Move(const Move&) = delete;
    Move& operator=(const Move&) = delete;
    /// Where the call began, which returned `result`; -1 when that cannot be told.
    std::int64_t end(std::int64_t result, int fd) {
        under_way_ = false;
        return position_.leave(entered_, result > 0 ? result : 0, fd);
    }
    void end_at(std::int64_t offset) {
        under_way_ = false;
        position_.leave_at(entered_, offset);
    }

    [[nodiscard]] bool alone() const { return Position::alone(entered_); }

private:
    Position& position_;
    std::uint64_t entered_;
    bool under_way_ = true;
};

/// What is known of a descriptor. All 0: it is not traced.
struct Descriptor {
    std::uint32_t file;         ///< id; one for each open()
    std::uint32_t slot : 31;    ///< of its position in `positions`; 0: none is followed
    std::uint32_t appends : 1;  ///< O_APPEND
};
static_assert(sizeof(Descriptor) == 8);

inline constexpr std::uint32_t position_capacity = 1U << 16;
extern std::uint64_t descriptors[descriptor_capacity];
extern Position positions[position_capacity];

inline Descriptor descriptor_of(int fd) {
    if (static_cast<unsigned>(fd) >= static_cast<unsigned>(descriptor_capacity)) return {};
    return __builtin_bit_cast(Descriptor, __atomic_load_n(&descriptors[fd], __ATOMIC_RELAXED));
}
inline std::uint32_t file_of(int fd) { return descriptor_of(fd).file; }

/// A descriptor was opened, its position 0.
void open_descriptor(int fd, std::uint32_t file, bool appends);
/// `copy` is the same open file description now.
void copy_descriptor(int fd, int copy);
/// A descriptor ends, or stands for something else.
void forget_descriptor(int fd);
/// Calls `each(fd, file)` for the traced ones among first .. last, and forgets them.
template <typename Each>
void forget_descriptors(unsigned first, unsigned last, Each&& each);
/// F_SETFL: of all descriptors of the description.
void set_appends(int fd, bool appends);
/// The descriptor's position is moved by others from now on.
void share_position(int fd);
/// Every position is moved by others from now on: a child has the descriptions too. `inherited_only`: after an exec, those
/// without close-on-exec.
void share_positions(bool inherited_only);
/// No traced descriptor is above.
int highest_descriptor();

template <typename Each>
void forget_descriptors(unsigned first, unsigned last, Each&& each) {
    const auto highest = static_cast<unsigned>(highest_descriptor());
    if (last > highest) last = highest;
    for (unsigned fd = first; fd <= last && fd != ~0U; ++fd) {
        const std::uint32_t file = file_of(static_cast<int>(fd));
        if (file == 0) continue;
        forget_descriptor(static_cast<int>(fd));
        each(static_cast<int>(fd), file);
    }
}

/// The engine's own descriptors: they are nobody else's reason to keep a file open. Kept also when nothing is traced.
extern std::uint64_t engine_descriptors[descriptor_capacity / 64];
/// How many of them have been closed, or stand for something else now, so that the engine need not ask the kernel in each call.
extern std::uint32_t engine_descriptors_gone;

inline bool is_engine_descriptor(int fd) {
    return static_cast<unsigned>(fd) < static_cast<unsigned>(descriptor_capacity) &&
           (__atomic_load_n(&engine_descriptors[fd / 64], __ATOMIC_RELAXED) >> (fd % 64) & 1U) != 0;
}
inline void mark_engine_descriptor(int fd, bool engines) {
    if (static_cast<unsigned>(fd) >= static_cast<unsigned>(descriptor_capacity)) return;
    const std::uint64_t bit = std::uint64_t{1} << (fd % 64);
    if (engines)
        __atomic_fetch_or(&engine_descriptors[fd / 64], bit, __ATOMIC_RELAXED);
    else if (is_engine_descriptor(fd)) {
        __atomic_fetch_and(&engine_descriptors[fd / 64], ~bit, __ATOMIC_RELAXED);
        __atomic_fetch_add(&engine_descriptors_gone, 1, __ATOMIC_RELEASE);
    }
}
/// Around whatever closes those among first .. last. Told before and after, for another thread may look in between.
class EngineDescriptorsClose {
public:
    EngineDescriptorsClose(unsigned first, unsigned last);
    ~EngineDescriptorsClose() {
        if (any_) __atomic_fetch_add(&engine_descriptors_gone, 1, __ATOMIC_RELEASE);
    }
    EngineDescriptorsClose(const EngineDescriptorsClose&) = delete;
    EngineDescriptorsClose& operator=(const EngineDescriptorsClose&) = delete;

private:
    bool any_ = false;
};

}  // namespace ioweir::tracer
