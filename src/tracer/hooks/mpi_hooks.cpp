// Bodies of the MPI-IO wrappers: guard, real call, record. Compiled once per MPI library.
#include "tracer/hooks/mpi_hooks.hpp"

#include <atomic>
#include <cstring>
#include <string_view>

#include "ioweir_generated/mpi_slots.hpp"
#include "mpi/mpi.hpp"
#include "tracer/hooks/handle_table.hpp"
#include "tracer/hooks/request_hooks.hpp"

namespace ioweir::tracer {
namespace {

using format::Function;

Tracer* tracer = nullptr;
mpi::FileCalls library_calls;
mpi::FileCalls below_mpi;
mpi::FileCalls below_pmpi;
mpi::FileCalls next_mpi;
mpi::FileCalls next_pmpi;
HandleTable<std::uint32_t> handle_files;
HandleTable<std::int64_t> split_bytes;  // asked for by a split collective that has begun; plus 1, since 0 means none

/// What a wrapper knows of its call before it begins.
struct Around {
    ThreadStream& stream;
    const Frame* outer;  ///< the innermost call that encloses it
    bool plain;          ///< nothing encloses it, it is recorded, and the clock is the time stamp counter
    [[nodiscard]] bool recorded() const { return plain || tracer->traces(LayerBit::mpi_io); }
    [[nodiscard]] std::uint64_t ticks() const { return ioweir::ticks(plain || tracer->use_tsc); }
};
Around enclosing_call() {
    ThreadStream& stream = *tracer->thread();
    return {stream, enclosing(stream, stack_position()), false};
}
[[gnu::always_inline]] inline bool is_plain_call(ThreadStream& stream) {
    return stream.depth == 0 && tracer->traces(LayerBit::mpi_io) && tracer->use_tsc;
}

/// The sequence number of the call that is under way.
std::uint32_t innermost_call(const ThreadStream& stream) {
    const bool known = stream.depth > 0 && stream.depth <= ThreadStream::max_depth;
    return known ? stream.frames[stream.depth - 1].parent : 0;
}

std::uintptr_t key_of(MPI_File handle) { return reinterpret_cast<std::uintptr_t>(handle); }

std::int64_t error_class(int code) {
    int result = code;
    PMPI_Error_class(code, &result);
    return result;
}

struct Readers {
    bool of[format::function_count] = {};
    constexpr Readers() {
        for (std::size_t i = 0; i < format::function_count; ++i)
            of[i] = std::string_view(format::functions[i].op) == "read";
    }
};
constexpr Readers readers;
constexpr bool is_read(Function function) { return readers.of[static_cast<std::uint16_t>(function)]; }

/// Sizes of the types that MPI itself defines, looked up instead of asked for. Nobody can free those, so that what is
/// known of a handle stays true. Entries are written once.
class TypeSizes {
public:
    /// Bytes of one; 0 when they cannot be told.
    [[gnu::always_inline]] std::int64_t of(MPI_Datatype type) {
        std::uint64_t handle = 0;  // a number (MPICH) or an address (Open MPI)
        static_assert(sizeof type <= sizeof handle);
        std::memcpy(&handle, &type, sizeof type);
        Entry& entry = entries_[(handle * 0x9E37'79B9'7F4A'7C15ULL) >> 58];
        const std::uint64_t known = entry.handle.load(std::memory_order_acquire);
        if (known == handle) [[likely]]
            return entry.bytes.load(std::memory_order_relaxed);
        return ask(type, handle, entry);
    }

private:
    static constexpr std::size_t capacity = 64;
    struct Entry {
        std::atomic<std::uint64_t> handle;  // 0: nobody's yet, or that of a type which can be freed
        std::atomic<std::int64_t> bytes;    // 0: free
    };

    [[gnu::noinline]] std::int64_t ask(MPI_Datatype type, std::uint64_t handle, Entry& entry) {
        MPI_Count size = 0;
        if (type == MPI_DATATYPE_NULL) return 0;  // the call returns an error, asking would end the program
        if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size <= 0) return 0;
        std::int64_t unused = 0;
        if (entry.bytes.load(std::memory_order_relaxed) != unused) return size;
        int integers = 0;
        int addresses = 0;
        int types = 0;
        int combiner = MPI_COMBINER_NAMED;
        if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return size;
        const bool lasting = combiner == MPI_COMBINER_NAMED;
        if (entry.bytes.compare_exchange_strong(unused, size) && lasting)
            entry.handle.store(handle, std::memory_order_release);
        return size;
    }

    Entry entries_[capacity];
};
TypeSizes type_sizes;

/// One recorded call. `call` makes it; `finish` says what to record: file, offset, bytes.
struct Outcome {
    std::uint32_t file;
    std::int64_t offset;
    std::int64_t bytes;
    std::uint64_t missing = 0;  ///< of a short call
};
[[gnu::noinline]] void record_failed(Function function, Context context, std::uint32_t sequence, std::uint32_t file,
                                     std::uint64_t start, std::uint64_t stop, std::int64_t offset, int code) {
    record_event(*tracer, *tracer->thread(), function, context, sequence, file, start, stop, offset, -error_class(code),
                 true);
}
template <typename Call, typename Finish>
[[gnu::always_inline]] inline int traced_call(Function function, const Around& around, Call&& call, Finish&& finish) {
    ThreadStream& stream = around.stream;
    if (!around.recorded()) [[unlikely]] {
        const Scope scope(stream, Layer::mpi_io, 0);
        return call();
    }
    const std::uint32_t sequence = next_sequence(stream);
    const std::uint64_t start = around.ticks();
    int code;
    {
        Cookie cookie;
        const Nesting nesting(cookie, stream, Layer::mpi_io, sequence, around.outer);
        code = call();
    }
    const std::uint64_t stop = around.ticks();
    const Outcome outcome = finish(stream, code);
    const Context context = context_in(around.outer);
    if (code != MPI_SUCCESS) [[unlikely]]
        record_failed(function, context, sequence, outcome.file, start, stop, outcome.offset, code);
    else if (outcome.missing != 0) [[unlikely]]
        record_short(*tracer, function, context, sequence, outcome.file, start, stop, outcome.offset, outcome.bytes,
                     outcome.missing);
    else
        record_event(*tracer, stream, function, context, sequence, outcome.file, start, stop, outcome.offset,
                     outcome.bytes, false);
    return code;
}

template <typename Call>
int traced_open(Function function, const Around& around, Call&& call, const char* filename, int amode, MPI_File* fh) {
    return traced_call(function, around, call, [&](ThreadStream& stream, int code) {
        const std::uint32_t file = tracer->register_file(stream, filename != nullptr ? filename : "");
        if (code == MPI_SUCCESS && file != 0 && !handle_files.insert(key_of(*fh), file))
            tracer->note(static_cast<std::uint32_t>(format::NoteCode::untraced), filename, 1,
                         "more MPI files are open than the handle table holds; their events carry no path");
        return Outcome{file, amode, 0};
    });
}

template <typename Call>
int traced_close(Function function, const Around& around, Call&& call, MPI_File* fh) {
    const std::uintptr_t key = fh != nullptr ? key_of(*fh) : 0;
    const std::uint32_t file = handle_files.find(key);
    // Before the real call: afterwards another thread's new file may already have the handle.
    if (file != 0) handle_files.erase(key);
    const int code = traced_call(function, around, call, [&](ThreadStream&, int) { return Outcome{file, -1, 0}; });
    if (code != MPI_SUCCESS && file != 0) handle_files.insert(key, file);
    return code;
}

/// Calls that move no data. `value`: the one offset or size that the call is given, else -1.
template <typename Call>
int traced_other(Function function, const Around& around, Call&& call, MPI_File fh, MPI_Offset value) {
    return traced_call(function, around, call,
                       [&](ThreadStream&, int) { return Outcome{handle_files.find(key_of(fh)), value, 0}; });
}

template <typename Call>
int traced_delete(Function function, const Around& around, Call&& call, const char* filename) {
    return traced_call(function, around, call, [&](ThreadStream& stream, int) {
        return Outcome{tracer->register_file(stream, filename != nullptr ? filename : ""), -1, 0};
    });
}

/// Bytes of `count` instances of a datatype; 0 when they cannot be told.
template <typename Count>
[[gnu::always_inline]] inline std::int64_t bytes_of(Count count, MPI_Datatype datatype) {
    return count > 0 ? static_cast<std::int64_t>(count) * type_sizes.of(datatype) : 0;
}

/// For the layers above, which do not know what an MPI_Datatype is. A null one must not reach the library: it would end
/// the program.
std::int64_t type_bytes(const void* types, std::size_t index) {
    MPI_Datatype datatype;
    std::memcpy(&datatype, static_cast<const std::byte*>(types) + index * sizeof datatype, sizeof datatype);
    MPI_Count bytes = -1;
    if (datatype == MPI_DATATYPE_NULL || PMPI_Type_size_x(datatype, &bytes) != MPI_SUCCESS) return -1;
    return bytes;
}

/// Non-blocking: what is asked for; the time is that of starting. What completes it: request_hooks.cpp.
template <typename Call, typename Count>
int traced_start(Function function, const Around& around, Call&& call, MPI_File fh, MPI_Offset offset, Count count,
                 MPI_Datatype datatype, MPI_Request* request) {
    std::uint32_t sequence = 0;
    const auto begin = [&] {
        sequence = innermost_call(*tracer->thread());
        return call();
    };
    return traced_call(function, around, begin, [&](ThreadStream&, int code) {
        const std::uint32_t file = handle_files.find(key_of(fh));
        if (code == MPI_SUCCESS) begin_request(*request, {file, sequence, !is_read(function)});
        return Outcome{file, offset, code == MPI_SUCCESS ? bytes_of(count, datatype) : 0};
    });
}

/// `call` takes the status to use: the program's, or ours when it ignores it, because the bytes moved are in it.
/// A read that moved fewer than asked has met the end of the file; of one that has not, the calls beneath are short.
template <typename Call>
[[gnu::always_inline]] inline int with_status(Function function, const Around& around, Call&& call, MPI_File fh,
                                              MPI_Offset offset, std::int64_t asked, MPI_Status* status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE && around.recorded()) {
        std::memset(&own, 0, sizeof own);
        status = &own;
    }
    return traced_call(
        function, around, [&] { return call(status); },
        [&](ThreadStream&, int code) {
            Outcome outcome{handle_files.find(key_of(fh)), offset, code == MPI_SUCCESS ? asked : 0};
            MPI_Count moved = 0;
            if (outcome.bytes > 0 && PMPI_Get_elements_x(status, MPI_BYTE, &moved) == MPI_SUCCESS && moved >= 0 &&
                moved < outcome.bytes) [[unlikely]] {
                if (!is_read(function)) outcome.missing = static_cast<std::uint64_t>(outcome.bytes - moved);
                outcome.bytes = moved;
            }
            return outcome;
        });
}

template <typename Call, typename Count>
[[gnu::always_inline]] inline int traced_transfer(Function function, const Around& around, Call&& call, MPI_File fh,
                                                  MPI_Offset offset, Count count, MPI_Datatype datatype,
                                                  MPI_Status* status) {
    const std::int64_t asked = around.recorded() ? bytes_of(count, datatype) : 0;
    return with_status(function, around, call, fh, offset, asked, status);
}

/// A split collective: its bytes are counted at its end, of which a handle has at most one to come (MPI 4.0, section 14.4.5).
template <typename Call, typename Count>
int traced_begin(Function function, const Around& around, Call&& call, MPI_File fh, MPI_Offset offset, Count count,
                 MPI_Datatype datatype) {
    return traced_call(function, around, call, [&](ThreadStream&, int code) {
        if (code == MPI_SUCCESS) split_bytes.insert(key_of(fh), bytes_of(count, datatype) + 1);
        return Outcome{handle_files.find(key_of(fh)), offset, 0};
    });
}

template <typename Call>
int traced_end(Function function, const Around& around, Call&& call, MPI_File fh, MPI_Status* status) {
    const std::int64_t asked = split_bytes.find(key_of(fh));
    split_bytes.erase(key_of(fh));
    return with_status(function, around, call, fh, -1, asked > 0 ? asked - 1 : 0, status);
}

#include "ioweir_generated/mpi_wrappers.inc"

}  // namespace

void arm(const MpiTables& tables, Tracer& process_tracer, void** slots) {
    tracer = &process_tracer;
    tracer->mpi_type_bytes = type_bytes;
    library_calls = tables.library;
    below_mpi = tables.below_mpi;
    below_pmpi = tables.below_pmpi;
    next_mpi = tables.next_mpi;
    next_pmpi = tables.next_pmpi;
    fill_slots(slots);
}

}  // namespace ioweir::tracer
