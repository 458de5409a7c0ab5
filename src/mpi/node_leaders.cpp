#include "mpi/node_leaders.hpp"

namespace ioweir::mpi {

std::vector<int> node_leaders(MPI_Comm comm, MPI_Comm node) {
    int leader = 0, ranks = 1;
    PMPI_Comm_rank(comm, &leader);
    PMPI_Comm_size(comm, &ranks);
    PMPI_Bcast(&leader, 1, MPI_INT, 0, node);
    std::vector<int> all(static_cast<std::size_t>(ranks));
    PMPI_Allgather(&leader, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
    return all;
}

std::vector<int> node_leaders(MPI_Comm comm) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    MPI_Comm node = MPI_COMM_NULL;
    PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    std::vector<int> all = node_leaders(comm, node);
    PMPI_Comm_free(&node);
    return all;
}

bool is_node_leader(MPI_Comm comm) {
    int rank = 0;
    if (PMPI_Comm_rank(comm, &rank) != MPI_SUCCESS) return false;
    const std::vector<int> leaders = node_leaders(comm);
    return leaders.at(static_cast<std::size_t>(rank)) == rank;
}

}  // namespace ioweir::mpi
