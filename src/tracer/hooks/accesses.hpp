// Accesses: through which open file, view and type in memory MPI-IO calls reach a file. Each combination has a number of the
// file ids', which events have in the place of the file, so that saying it costs a call nothing.
// What does not live here: datatypes (datatypes.hpp); which file extents that gives (analysis, for whoever reads the trace).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/handle_table.hpp"
#include "mpi/mpi.hpp"
#include "tracer/hooks/datatypes.hpp"
#include "tracer/ring/stream.hpp"

namespace ioweir::tracer {

class Accesses {
public:
    /// Once, before any call.
    void arm(const Tracer& tracer) { tracer_ = &tracer; }

    /// `pointer`: where the handle's own pointer is. False when more are open than are kept: the handle stays unknown.
    bool open(MPI_File handle, std::uint32_t file, int ranks, std::int64_t pointer);

    /// What events of calls on the handle name that use no type of memory: a file, or an access to it. 0: unknown.
    [[nodiscard]] std::uint32_t find(MPI_File handle) const {
        return static_cast<std::uint32_t>(numbers_.find(key_of(handle)));
    }
    /// The same of a call that uses a type of memory.
    [[nodiscard, gnu::always_inline]] std::uint32_t find(MPI_File handle, KnownType memory) {
        const std::uint64_t number = numbers_.find(key_of(handle));
        if (number >> 32 == memory.number) [[likely]]
            return static_cast<std::uint32_t>(number);
        return find_further(handle, static_cast<std::uint32_t>(memory.number));
    }
    /// The same of a call that moves the handle's own pointer without data: its events must tell the handle and its view.
    [[nodiscard]] std::uint32_t find_pointer(MPI_File handle);

    void set_view(MPI_File handle, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                  const char* representation);

    /// What is known of a handle, while the call that closes it goes on: then another thread's new file may have it.
    struct Taken {
        std::uint64_t number = 0;
        std::uint32_t slot = 0;
    };
    Taken take(MPI_File handle);
    void give_back(MPI_File handle, Taken taken);
    void close(Taken taken);

private:
    static constexpr std::uint64_t no_memory = std::uint64_t{0xffff'ffff}
                                               << 32;  ///< nothing was accessed since open or set_view
    static constexpr std::size_t kept = 2048;  ///< accesses, and a part of it views, whose numbers are remembered

    struct Opened {
        std::uint32_t file = 0;
        std::uint32_t handle = 0;  ///< number
        std::uint32_t view = 0;
        std::uint32_t ranks = 0;
        std::int64_t pointer = 0;
    };
    struct Access {
        std::uint32_t handle = 0, view = 0, memory = 0;
        std::uint32_t number = 0;
    };
    struct View {
        std::uint64_t digest = 0;
        std::uint32_t number = 0;
    };

    static std::uintptr_t key_of(MPI_File handle) { return reinterpret_cast<std::uintptr_t>(handle); }
    std::uint32_t find_further(MPI_File handle, std::uint32_t memory);
    std::uint32_t number_of(Opened& opened, std::uint32_t memory);

    const Tracer* tracer_ = nullptr;
    /// By handle: what events name, and above it the number of the type of memory for which that holds.
    HandleTable<std::uint64_t> numbers_;
    HandleTable<std::uint32_t> slots_;          ///< by handle, plus 1
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;  ///< of what follows
    Opened opened_[HandleTable<std::uint32_t>::capacity];
    std::uint32_t free_[HandleTable<std::uint32_t>::capacity];  ///< slots that were in use
    std::uint32_t free_count_ = 0;
    std::uint32_t slots_used_ = 0;
    std::uint32_t handles_ = 0;
    std::uint32_t views_count_ = 0;
    Access accesses_[kept];
    View views_[kept / 8];
};

extern Accesses accesses;

}  // namespace ioweir::tracer
