// Asynchronous requests that have been submitted: whose they are and which event began them. For aio and io_uring, which name a
// request by an address or by a number of the program's choice.
// No heap; a lock held for a few instructions. A request that the table has no room for is recorded, but not its completion. Nor is one
// that a signal handler asks for while it interrupts the table itself.
#pragma once

#include <atomic>
#include <cstdint>

namespace ioweir::tracer {

enum class IoKind : std::uint8_t { read, write, sync };

struct PendingIo {
    std::uint32_t file = 0;      ///< 0: not known
    std::uint32_t sequence = 0;  ///< of the submission; 0: several requests have this name
    IoKind kind = IoKind::read;
    bool ended = false;         ///< the program was told so
    std::uint64_t written = 0;  ///< how much a write is to write; 0: not known

    /// Of a write that ended with `result`: bytes that it did not write.
    [[nodiscard]] std::uint64_t missing(std::int64_t result) const {
        return kind == IoKind::write && result >= 0 && static_cast<std::uint64_t>(result) < written
                   ? written - static_cast<std::uint64_t>(result)
                   : 0;
    }
};

class PendingIoTable {
public:
    static constexpr std::uint32_t capacity = 1U << 14;

    [[nodiscard]] bool any() const { return count_.load(std::memory_order_relaxed) != 0; }

    void add(std::uint64_t owner, std::uint64_t name, PendingIo request) {
        const Hold hold(*this);
        if (!hold) return;
        for (std::uint32_t i = home(owner, name), seen = 0; seen < longest_run; i = (i + 1) % capacity, ++seen) {
            Entry& entry = entries_[i];
            if (entry.used) continue;
            entry = {owner, name, request, true};
            count_.fetch_add(1, std::memory_order_relaxed);
            return;
        }
    }
    /// Where a name stands for one request only: an earlier one of this name is over.
    void replace(std::uint64_t owner, std::uint64_t name, PendingIo request) {
        if (any()) {
            const Hold hold(*this);
            if (!hold) return;
            if (Entry* entry = locate(owner, name)) {
                entry->request = request;
                return;
            }
        }
        add(owner, name, request);
    }
    PendingIo find(std::uint64_t owner, std::uint64_t name, bool mark_ended = false) {
        if (!any()) return {};
        const Hold hold(*this);
        if (!hold) return {};
        Entry* entry = locate(owner, name);
        if (entry == nullptr) return {};
        const PendingIo found = entry->request;
        if (mark_ended) entry->request.ended = true;
        return found;
    }
    /// One of the requests of this name; when there are several of different kinds, nobody knows which: none.
    PendingIo take(std::uint64_t owner, std::uint64_t name) {
        if (!any()) return {};
        const Hold hold(*this);
        if (!hold) return {};
        Entry* first = nullptr;
        bool several = false;
        bool alike = true;
        for (std::uint32_t i = home(owner, name), seen = 0; seen < longest_run; i = (i + 1) % capacity, ++seen) {
            Entry& entry = entries_[i];
            if (!entry.used || entry.owner != owner || entry.name != name) continue;
            if (first == nullptr) {
                first = &entry;
                continue;
            }
            several = true;
            alike = alike && entry.request.kind == first->request.kind && entry.request.file == first->request.file;
        }
        if (first == nullptr) return {};
        PendingIo taken = first->request;
        first->used = false;
        count_.fetch_sub(1, std::memory_order_relaxed);
        if (several) taken.sequence = 0;
        if (several) taken.written = 0;
        return alike ? taken : PendingIo{};
    }
    void forget_owner(std::uint64_t owner) {
        if (!any()) return;
        const Hold hold(*this);
        if (!hold) return;
        for (Entry& entry : entries_)
            if (entry.used && entry.owner == owner) {
                entry.used = false;
                count_.fetch_sub(1, std::memory_order_relaxed);
            }
    }

private:
    /// The table for this thread alone. Not given where the thread has it already: aio_error, aio_return and aio_suspend may be called in a
    /// signal handler, which would wait for what it has interrupted.
    class Hold {
    public:
        explicit Hold(PendingIoTable& table) : table_(table), before_(held_here) {
            if (!*this) return;
            held_here = &table;
            std::atomic_signal_fence(std::memory_order_seq_cst);
            while (table.busy_.test_and_set(std::memory_order_acquire)) {
            }
        }
        ~Hold() {
            if (!*this) return;
            table_.busy_.clear(std::memory_order_release);
            std::atomic_signal_fence(std::memory_order_seq_cst);
            held_here = before_;
        }
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;
        explicit operator bool() const { return before_ != &table_; }

    private:
        PendingIoTable& table_;
        const PendingIoTable* const before_;
    };
    inline static constinit thread_local const PendingIoTable* held_here __attribute__((tls_model("initial-exec"))) =
        nullptr;

    /// How far from its home a request may lie; entries are not kept in runs, so that all of it is looked at.
    static constexpr std::uint32_t longest_run = 64;
    struct Entry {
        std::uint64_t owner;
        std::uint64_t name;
        PendingIo request;
        bool used;
    };
    static std::uint32_t home(std::uint64_t owner, std::uint64_t name) {
        return static_cast<std::uint32_t>(((owner ^ name * 0x9E37'79B9'7F4A'7C15ULL) * 0x9E37'79B9'7F4A'7C15ULL) >>
                                          40) %
               capacity;
    }
    Entry* locate(std::uint64_t owner, std::uint64_t name) {
        for (std::uint32_t i = home(owner, name), seen = 0; seen < longest_run; i = (i + 1) % capacity, ++seen)
            if (entries_[i].used && entries_[i].owner == owner && entries_[i].name == name) return &entries_[i];
        return nullptr;
    }

    Entry entries_[capacity];
    std::atomic<std::uint32_t> count_;
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

}  // namespace ioweir::tracer
