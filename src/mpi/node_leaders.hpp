// Which ranks are on one node (MPI_COMM_TYPE_SHARED).
// What does not live here: nodes that tests play (exchange/group.cpp), processors (planner/topology.hpp).
#pragma once

#include <vector>

#include "mpi/mpi.hpp"

namespace ioweir::mpi {

/// Collective over `comm`: of each rank the lowest one on its node.
[[nodiscard]] std::vector<int> node_leaders(MPI_Comm comm);
/// Collective over `comm`: whether this rank is the lowest one of `comm` on its node.
[[nodiscard]] bool is_node_leader(MPI_Comm comm);
/// The same as node_leaders(comm) where `node`, of which nothing but its ranks is used, has the ranks of this node.
[[nodiscard]] std::vector<int> node_leaders(MPI_Comm comm, MPI_Comm node);

}  // namespace ioweir::mpi
