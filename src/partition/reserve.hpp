// Memory kept for the small things without which a delegate cannot even say that there is no more: lists, texts,
// messages. What does not live here: the memory of blocks (block_memory.hpp), without which a set fails.
#pragma once

#include <cstdint>

namespace ioweir::partition {

/// Given back to the system when `new` fails on a thread that uses it, so that the same `new` is tried again.
class Reserve {
public:
    /// Throws std::bad_alloc.
    explicit Reserve(std::int64_t bytes);
    ~Reserve();
    Reserve(const Reserve&) = delete;
    Reserve& operator=(const Reserve&) = delete;

    [[nodiscard]] bool is_there() const { return memory_ != nullptr; }
    /// To so much at least, or to what it had first. False: the system has no more, and what there is of it stays.
    [[nodiscard]] bool refill(std::int64_t bytes);
    [[nodiscard]] bool refill() { return refill(least_bytes_); }
    /// Gives it back to the system. False: there is none.
    bool spend();

    /// This thread's `new` uses a reserve, which must outlive this.
    class Use {
    public:
        explicit Use(Reserve& reserve);
        ~Use();
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;

    private:
        Reserve* const before_;
    };

private:
    const std::int64_t least_bytes_;
    std::int64_t bytes_ = 0;
    void* memory_ = nullptr;
};

}  // namespace ioweir::partition
