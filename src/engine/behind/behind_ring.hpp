// BehindRing: bytes on their way from one rank to whoever writes them behind it, in memory that both share. The rank puts records in,
// one consumer at a time takes them out, in the same order.
// What does not live here: who consumes when (write_behind_queue.hpp), which files and calls (behind.cpp), MPI.
//
// A record is a header, packed data, and the places in the file where the data go, as runs: `count` pieces of `length` bytes, `stride`
// bytes apart. Pieces that are neighbours in the file are one piece, whatever they were in memory. A record stays in the ring
// until it is written: a consumer that dies leaves it for the next one, and writing it twice does no harm.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "exchange/direct.hpp"
#include "exchange/shared_memory.hpp"
#include "exchange/walk.hpp"
#include "storage/backend.hpp"

namespace ioweir::engine {

using namespace exchange;

/// What rank and consumer tell each other. In shared memory, zero at first. Positions count bytes for ever; modulo the capacity they
/// are places in the ring.
struct BehindWords {
    alignas(64) std::atomic<std::uint64_t> head;  ///< put in, by the rank
    alignas(64) std::atomic<std::uint64_t> tail;  ///< done with, by the consumer
    SharedWord moved;                             ///< changes with tail; waited on
    SharedWord waiting;                           ///< how many wait
    std::atomic<std::int32_t> error;              ///< errno value of the first failure that nobody has taken; 0: none
    std::atomic<std::uint64_t> failed_call;       ///< the last call of which a record failed; 0: none
    std::atomic<std::int64_t> operations;         ///< storage operations asked for
};

class BehindRing {
public:
    /// `capacity` bytes of shared memory from `data` on: a multiple of 8, at least least_bytes.
    BehindRing(BehindWords& words, std::byte* data, std::int64_t capacity);
    static constexpr std::int64_t least_bytes = 4096;

    // The rank's side.

    /// The bytes of one call; put in part by part.
    class Parcel {
    public:
        Parcel(const Memory& memory, const FileRange& range, std::uint64_t call)
            : call_(call), left_(memory.bytes), stretches_(memory, range, 0, memory.bytes) {}
        [[nodiscard]] bool done() const { return left_ == 0; }
        [[nodiscard]] std::int64_t left() const { return left_; }

    private:
        friend class BehindRing;
        std::uint64_t call_;
        std::int64_t left_;
        StretchCursor stretches_;
        Stretch stretch_{nullptr, {}};
    };
    /// Is there room for the next record of it?
    [[nodiscard]] bool has_room(const Parcel& parcel) const;
    /// Puts one record in, as much as is worth while; there must be room. `call` numbers of parcels must rise.
    void put(Parcel& parcel);
    /// The same for a call whose bytes lie together in memory and in the file: one copy and one store, and no instruction that waits for
    /// the copy to be seen. False, and nothing has happened, where there is no room or there are too many bytes. Unless `consumer_rests`, words
    /// that it is about to change are let alone.
    [[nodiscard]] bool put_piece(const void* data, std::int64_t bytes, std::int64_t offset, std::uint64_t call,
                                 bool consumer_rests);
    /// At least so many bytes wait to be written, or all that do: what the consumer has done is looked at only where it matters.
    [[nodiscard]] bool waits_for(std::int64_t bytes);
    /// Everything that was put in before this moment lies before this position.
    [[nodiscard]] std::uint64_t end() const { return words_.head.load(std::memory_order_acquire); }
    [[nodiscard]] bool reached(std::uint64_t position) const {
        return static_cast<std::int64_t>(words_.tail.load(std::memory_order_acquire) - position) >= 0;
    }
    /// Waits until something has moved on, `most_us` microseconds have passed, or for no reason.
    template <typename Ready>
    void rest_until(Ready ready, std::int64_t most_us) const {
        words_.waiting.fetch_add(1, std::memory_order_seq_cst);
        const std::uint32_t seen = words_.moved.load(std::memory_order_seq_cst);
        if (!ready()) wait_while(words_.moved, seen, most_us);
        words_.waiting.fetch_sub(1, std::memory_order_seq_cst);
    }
    [[nodiscard]] bool has_error() const { return words_.error.load(std::memory_order_relaxed) != 0; }
    /// The errno value of the first failure since the last time; 0: none.
    [[nodiscard]] int take_error() const {
        return has_error() ? words_.error.exchange(0, std::memory_order_acq_rel) : 0;
    }
    [[nodiscard]] std::int64_t operations() const { return words_.operations.load(std::memory_order_relaxed); }

    // The consumer's side.

    [[nodiscard]] bool empty() const { return reached(words_.head.load(std::memory_order_seq_cst)); }
    /// Writes the oldest record; the ring must not be empty. `bad_descriptor`: an errno value instead of a try. An error ends the
    /// call of which the record is a part: what follows of it is dropped, as a call without write-behind would stop there.
    void write_one(storage::Backend& backend, int descriptor, int bad_descriptor) const;

private:
    struct Header {
        std::uint64_t bytes;  // of all of it, in the ring
        std::uint64_t call;   // 0: only fills up the ring's end
        std::int64_t data_bytes;
        std::int64_t runs;
    };
    struct Run {
        std::int64_t offset, length, stride, count;
    };

    [[nodiscard]] std::byte* at(std::uint64_t position) const { return data_ + position % capacity_; }
    [[nodiscard]] std::uint64_t room_wanted(const Parcel& parcel) const;
    bool begins_again(std::uint64_t wanted);
    void fill_up(std::uint64_t to_end);
    void keep_head(std::uint64_t head, std::uint64_t place);
    bool add_piece(layout::Extent piece, std::size_t most_runs);
    [[nodiscard]] int write_runs(storage::Backend& backend, int descriptor, const Header& header) const;

    BehindWords& words_;
    std::byte* data_;
    std::uint64_t capacity_;
    /// What the rank knows without looking at words that the consumer changes.
    struct alignas(64) Known {
        std::uint64_t head = 0;
        std::uint64_t place = 0;  // of the head, in the ring
        std::uint64_t tail = 0;   // at least
    };
    Known known_;
    std::vector<Run> runs_;  // of the record being made
};

}  // namespace ioweir::engine
