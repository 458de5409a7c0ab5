// This rank among all, for tests that run under mpiexec.
#pragma once

#include "mpi/mpi.hpp"

namespace ioweir::cases {

struct Ranks {
    int mine = 0, all = 1;
    Ranks() {
        PMPI_Comm_rank(MPI_COMM_WORLD, &mine);
        PMPI_Comm_size(MPI_COMM_WORLD, &all);
    }
};

}  // namespace ioweir::cases
