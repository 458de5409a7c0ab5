// The ways of moving a kernel's bytes that can be compared. Each writes the whole file, then reads it back and checks it.
//   mpiio        MPI-IO's collective calls with the original program's datatypes
//   independent  the same views, each rank by itself
//   posix        every rank writes its own pieces of the shared file with pwrite, and reads with pread: what a hand-written writer
//                without exchange does
//   exchange     what a hand-written two-phase writer does: Alltoallv to as many even domains as ranks, then one pwrite of each
//   fpp          a file per process, one pwritev a call: the bound that nothing that shares a file can pass
//   uniform      the same ceiling as Howison et al. 2010 (section VII-B) take it: every rank and call moves the mean, from one buffer
//   netcdf       the kernel's arrays through PnetCDF, a collective call for each, in a netCDF file (netcdf.hpp)
//   hdf5         the kernel's arrays through parallel HDF5 (hdf5.hpp)
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "kernels/runner/job.hpp"

namespace ioweir::kernels {

struct Times {
    double write_s = 0;
    double write_span_s = 0;  ///< from the first call to the end of the last one
    double read_s = 0;
    std::optional<double> open_close_s;  ///< of both directions, where the mode takes their time
    bool right = false;                  ///< on this rank: what was read is what was written
    std::optional<bool> file_right;      ///< where the mode itself has compared the closed file
};

struct Mode {
    std::string_view name;
    bool shares_file;  ///< leaves the kernel's file behind, which holds the kernel's bytes and nothing else
    Times (*run)(Job& job);
    void (*remove)(const Job& job);  ///< by one rank: the file that `run` has left, if it is there
};

inline constexpr std::string_view netcdf_mode = "netcdf";
inline constexpr std::string_view hdf5_mode = "hdf5";

[[nodiscard]] std::span<const Mode> known_modes();

}  // namespace ioweir::kernels
