! The same through the Fortran bindings: rank 0 comes late to a barrier, and with a broadcast.
program waiting
    use mpi
    implicit none
    integer :: ierror, rank, number
    double precision :: begun
    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call late()
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call late()
    number = rank
    call MPI_Bcast(number, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    if (number /= 0) call MPI_Abort(MPI_COMM_WORLD, 9, ierror)
    call MPI_Finalize(ierror)
contains
    subroutine late()
        begun = MPI_Wtime()
        do while (rank == 0 .and. MPI_Wtime() - begun < 0.03d0)
        end do
    end subroutine late
end program waiting
