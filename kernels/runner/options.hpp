// The runner's command line. What its options mean: main.cpp. What does not live here: doing it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/runner/hdf5_settings.hpp"
#include "kernels/runner/modes.hpp"

namespace ioweir::kernels {

/// A mode and the file it works on.
struct Way {
    const Mode* mode = nullptr;
    std::string file;
};

struct Options {
    std::string kernel;
    std::vector<Setting> settings;
    std::string directory;
    std::string file;
    std::vector<Way> ways;
    std::vector<std::pair<std::string, std::string>> hints;
    std::vector<std::string> spread;
    std::int64_t repeats = 1;
    std::uint64_t salt = 0;
    bool verify = false;
    bool keep = false;
    bool sync = false;
    bool cold = false;
    bool warm_up = false;
    int written_by = 0;
    double dummy = 0;    ///< share of the available memory
    double pause_s = 0;  ///< between repetitions
    Hdf5Settings hdf5;
    int ranks = 0;        ///< as many as the caller asked a launcher for; 0: unknown
    int check_ranks = 0;  ///< only look at the command line, as of so many ranks: for a caller before it starts them
};

/// Ends the program with code 2; one rank says the mistake, which is the user's. Without MPI_Init too.
[[noreturn]] void refuse(const Error& error);

/// On every rank; what is wrong is refused.
[[nodiscard]] Options parse(int argc, char** argv);

/// Whether a mode writes Kernel::arrays() by a library, and not the kernel's bytes.
[[nodiscard]] bool writes_arrays(const Mode& mode);

/// Refuses what netCDF or HDF5 cannot do with this kernel.
void check_arrays(const Options& options, const Kernel& kernel);

}  // namespace ioweir::kernels
