// One random case of MPI-IO: views, memory types, offsets and functions from a seed; done, read back and judged by an oracle that
// expands every datatype byte by byte and knows nothing of how the I/O is done.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cases {

/// The functions under test: the MPI library's own, or what stands between them and the program.
struct IoCalls {
    int (*open)(MPI_Comm, const char*, int, MPI_Info, MPI_File*);
    int (*close)(MPI_File*);
    int (*set_view)(MPI_File, MPI_Offset, MPI_Datatype, MPI_Datatype, const char*, MPI_Info);
    int (*read_at)(MPI_File, MPI_Offset, void*, int, MPI_Datatype, MPI_Status*);
    int (*read_at_all)(MPI_File, MPI_Offset, void*, int, MPI_Datatype, MPI_Status*);
    int (*read)(MPI_File, void*, int, MPI_Datatype, MPI_Status*);
    int (*read_all)(MPI_File, void*, int, MPI_Datatype, MPI_Status*);
    int (*write_at)(MPI_File, MPI_Offset, const void*, int, MPI_Datatype, MPI_Status*);
    int (*write_at_all)(MPI_File, MPI_Offset, const void*, int, MPI_Datatype, MPI_Status*);
    int (*write)(MPI_File, const void*, int, MPI_Datatype, MPI_Status*);
    int (*write_all)(MPI_File, const void*, int, MPI_Datatype, MPI_Status*);
    int (*sync)(MPI_File);
    int (*seek)(MPI_File, MPI_Offset, int);
    int (*get_position)(MPI_File, MPI_Offset*);
};
/// The program's own view of MPI.
extern const IoCalls mpi_calls;

struct CaseResult {
    std::vector<std::string> problems;       ///< what this rank found wrong; empty: nothing
    std::string text;                        ///< what the case did
    std::vector<unsigned char> file;         ///< the whole file afterwards, on every rank; undefined bytes as zeros
    std::vector<unsigned char> read_memory;  ///< every byte of this rank's buffers after reading, holes too; the same
    std::int64_t data_bytes = 0;             ///< moved by this rank
};

/// How hard a case is, and how strictly it is judged.
enum class Level {
    /// What MPI libraries get right: memory types as programs have them, calls separated by MPI_File_sync. Bytes that nobody has
    /// ever written are undefined, as MPI says: two-phase writes of ROMIO and OMPIO leave rubbish in holes beyond the old end.
    tame,
    /// Everything MPI allows. Bytes that nobody has written are zero, as in POSIX files.
    wild,
};

/// Collective over `comm`. `path` is created and removed.
CaseResult run_case(const IoCalls& io, Level level, std::uint64_t seed, std::uint64_t index, MPI_Comm comm,
                    const std::string& path);

/// Of file and buffers.
std::uint64_t hash_of(const CaseResult& result);

}  // namespace cases
