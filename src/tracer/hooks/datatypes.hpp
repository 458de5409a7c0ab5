// Datatypes: what the tracer knows of the program's MPI datatypes, each of which is recorded once, when a call first uses it.
// What does not live here: what their constructors mean (layout/core/type_values.hpp, for whoever reads the trace).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/made_handles.hpp"
#include "ioweir_generated/records.hpp"
#include "mpi/mpi.hpp"
#include "tracer/ring/stream.hpp"

namespace ioweir::tracer {

struct KnownType {
    std::int64_t bytes = 0;    ///< of one; 0 when they cannot be told
    std::uint64_t number = 0;  ///< its TypeRecord's; 0: none
};

/// A handle of a type that MPI itself defines is looked up: nobody can free it, so that what is known of it stays true. A handle
/// that the program made is looked up, too, until any such type is freed, which an attribute of the type tells.
class Datatypes {
public:
    /// Once, before any call.
    void arm(const Tracer& tracer) { tracer_ = &tracer; }

    [[gnu::always_inline]] KnownType find(MPI_Datatype type) {
        const std::uint64_t handle = number_of_handle(type);
        Entry& entry = lasting_[place_of(handle)];
        if (entry.handle.load(std::memory_order_acquire) == handle) [[likely]]
            return {entry.bytes.load(std::memory_order_relaxed), entry.number.load(std::memory_order_relaxed)};
        return find_made(type, handle);
    }

    /// A type that the program made is freed: handles of such types may stand for others from now on.
    void forget() { made_.forget(); }

    /// Lets MPI free the attribute key. Before MPI is finalised.
    void release();

private:
    static constexpr std::size_t capacity = 64;
    static constexpr std::size_t kept = 1024;  ///< contents whose numbers are remembered

    struct Entry {
        std::atomic<std::uint64_t> handle;  ///< 0: nobody's yet; stored last
        std::atomic<std::int64_t> bytes;
        std::atomic<std::uint32_t> number;
        std::atomic<bool> taken;
    };
    struct Content {
        std::uint64_t digest = 0;
        std::uint32_t number = 0;
    };

    static std::size_t place_of(std::uint64_t handle) { return (handle * 0x9E37'79B9'7F4A'7C15ULL) >> 58; }
    static_assert(capacity == 64, "place_of gives six bits");

    KnownType find_made(MPI_Datatype type, std::uint64_t handle);
    KnownType ask(MPI_Datatype type, std::uint64_t handle);
    std::uint32_t record(MPI_Datatype type, std::int64_t size, int depth, bool& lasts);
    void record_inner(std::span<const MPI_Datatype> types, int depth, std::uint32_t* numbers);
    std::uint32_t number_of_content(format::TypeRecord& record, std::span<const std::int64_t> values,
                                    std::span<const std::uint32_t> types, const char* name);
    bool is_watched(MPI_Datatype type);

    const Tracer* tracer_ = nullptr;
    Entry lasting_[capacity];
    MadeHandles<KnownType> made_;               ///< changed with busy_
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;  ///< of what follows
    Content contents_[kept];
    std::uint32_t walked_ = 0;  ///< types walked through for the present one
    std::uint32_t next_number_ = 0;
    std::uint64_t recorded_bytes_ = 0;
    int key_ = MPI_KEYVAL_INVALID;
};

extern Datatypes datatypes;

}  // namespace ioweir::tracer
