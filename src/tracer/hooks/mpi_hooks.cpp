// Bodies of the MPI-IO wrappers: guard, real call, record. Compiled once per MPI library.
#include "tracer/hooks/mpi_hooks.hpp"

#include <cstring>
#include <string_view>

#include "base/handle_table.hpp"
#include "ioweir_generated/mpi_slots.hpp"
#include "mpi/mpi.hpp"
#include "mpi/status_bytes.hpp"
#include "tracer/hooks/accesses.hpp"
#include "tracer/hooks/datatypes.hpp"
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
mpi::StatusBytes status_bytes;
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

/// Where a file's own pointer is once it is open. `position` asks what opened it.
template <typename Position>
std::int64_t first_pointer(MPI_File handle, int amode, Position position) {
    MPI_Offset offset = 0;
    return (amode & MPI_MODE_APPEND) != 0 && position(handle, &offset) == MPI_SUCCESS ? offset : 0;
}

template <typename Call, typename Position>
int traced_open(Function function, const Around& around, Call&& call, Position position, MPI_Comm comm,
                const char* filename, int amode, MPI_File* fh) {
    return traced_call(function, around, call, [&](ThreadStream& stream, int code) {
        const std::uint32_t file = tracer->register_file(stream, filename != nullptr ? filename : "");
        if (code != MPI_SUCCESS || file == 0) return Outcome{file, amode, 0};
        int ranks = 0;
        PMPI_Comm_size(comm, &ranks);
        if (!accesses.open(*fh, file, ranks, first_pointer(*fh, amode, position)))
            tracer->note(static_cast<std::uint32_t>(format::NoteCode::untraced), filename, 1,
                         "more MPI files are open than the handle table holds; their events carry no path");
        return Outcome{file, amode, 0};
    });
}

template <typename Call>
int traced_close(Function function, const Around& around, Call&& call, MPI_File* fh) {
    // Before the real call: afterwards another thread's new file may already have the handle.
    const Accesses::Taken taken = fh != nullptr ? accesses.take(*fh) : Accesses::Taken{};
    const MPI_File handle = fh != nullptr ? *fh : MPI_FILE_NULL;
    const int code = traced_call(function, around, call, [&](ThreadStream&, int) {
        return Outcome{static_cast<std::uint32_t>(taken.number), -1, 0};
    });
    if (code == MPI_SUCCESS)
        accesses.close(taken);
    else if (fh != nullptr)
        accesses.give_back(handle, taken);
    return code;
}

/// Calls that move no data. `value`: the one offset or size that the call is given, else -1.
template <typename Call>
int traced_other(Function function, const Around& around, Call&& call, MPI_File fh, MPI_Offset value) {
    return traced_call(function, around, call,
                       [&](ThreadStream&, int) { return Outcome{accesses.find(fh), value, 0}; });
}

/// The event has the view before the call: it tells readers that the file's pointers are at the view's begin.
template <typename Call>
int traced_set_view(Function function, const Around& around, Call&& call, MPI_File fh, MPI_Offset displacement,
                    MPI_Datatype etype, MPI_Datatype filetype, const char* representation) {
    return traced_call(function, around, call, [&](ThreadStream&, int code) {
        const Outcome outcome{accesses.find(fh), displacement, 0};
        if (code == MPI_SUCCESS) accesses.set_view(fh, displacement, etype, filetype, representation);
        return outcome;
    });
}

/// Records where the pointer is afterwards. `position` asks what moved it.
template <typename Call, typename Position>
int traced_seek(Function function, const Around& around, Call&& call, Position position, MPI_File fh, MPI_Offset offset,
                int whence) {
    return traced_call(function, around, call, [&](ThreadStream&, int code) {
        MPI_Offset place = offset;
        if (code == MPI_SUCCESS && whence != MPI_SEEK_SET && position(fh, &place) != MPI_SUCCESS) place = -1;
        return Outcome{accesses.find_pointer(fh), place, 0};
    });
}

template <typename Call>
int traced_delete(Function function, const Around& around, Call&& call, const char* filename) {
    return traced_call(function, around, call, [&](ThreadStream& stream, int) {
        return Outcome{tracer->register_file(stream, filename != nullptr ? filename : ""), -1, 0};
    });
}

/// Bytes of `count` instances of a datatype; 0 when they cannot be told.
template <typename Count>
[[gnu::always_inline]] inline std::int64_t bytes_of(Count count, KnownType type) {
    return count > 0 ? static_cast<std::int64_t>(count) * type.bytes : 0;
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
        const KnownType memory = datatypes.find(datatype);
        const std::uint32_t file = accesses.find(fh, memory);
        if (code == MPI_SUCCESS) begin_request(*request, {file, sequence, !is_read(function)});
        return Outcome{file, offset, code == MPI_SUCCESS ? bytes_of(count, memory) : 0};
    });
}

/// `call` takes the status to use: the program's, or ours when it ignores it, because the bytes moved are in it.
/// A read that moved fewer than asked has met the end of the file; of one that has not, the calls beneath are short.
/// `access`: what the event names.
template <typename Call, typename Access>
[[gnu::always_inline]] inline int with_status(Function function, const Around& around, Call&& call, Access&& access,
                                              MPI_Offset offset, std::int64_t asked, MPI_Status* status) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE && around.recorded()) {
        std::memset(&own, 0, sizeof own);
        status = &own;
    }
    return traced_call(
        function, around, [&] { return call(status); },
        [&](ThreadStream&, int code) {
            Outcome outcome{access(), offset, code == MPI_SUCCESS ? asked : 0};
            const std::int64_t moved = outcome.bytes > 0 ? status_bytes(*status) : -1;
            if (moved >= 0 && moved < outcome.bytes) [[unlikely]] {
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
    const KnownType memory = around.recorded() ? datatypes.find(datatype) : KnownType{};
    return with_status(
        function, around, call, [&] { return accesses.find(fh, memory); }, offset, bytes_of(count, memory), status);
}

/// A split collective: its bytes are counted at its end, of which a handle has at most one to come (MPI 4.0, section 14.4.5).
template <typename Call, typename Count>
int traced_begin(Function function, const Around& around, Call&& call, MPI_File fh, MPI_Offset offset, Count count,
                 MPI_Datatype datatype) {
    return traced_call(function, around, call, [&](ThreadStream&, int code) {
        const KnownType memory = datatypes.find(datatype);
        if (code == MPI_SUCCESS) split_bytes.insert(key_of(fh), bytes_of(count, memory) + 1);
        return Outcome{accesses.find(fh, memory), offset, 0};
    });
}

template <typename Call>
int traced_end(Function function, const Around& around, Call&& call, MPI_File fh, MPI_Status* status) {
    const std::int64_t asked = split_bytes.find(key_of(fh));
    split_bytes.erase(key_of(fh));
    return with_status(
        function, around, call, [&] { return accesses.find(fh); }, -1, asked > 0 ? asked - 1 : 0, status);
}

#include "ioweir_generated/mpi_wrappers.inc"

}  // namespace

void disarm() { datatypes.release(); }

void arm(const MpiTables& tables, Tracer& process_tracer, void** slots) {
    tracer = &process_tracer;
    tracer->mpi_type_bytes = type_bytes;
    status_bytes.arm();
    datatypes.arm(process_tracer);
    accesses.arm(process_tracer);
    library_calls = tables.library;
    below_mpi = tables.below_mpi;
    below_pmpi = tables.below_pmpi;
    next_mpi = tables.next_mpi;
    next_pmpi = tables.next_pmpi;
    fill_slots(slots);
}

}  // namespace ioweir::tracer
