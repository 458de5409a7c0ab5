! PnetCDF through both of its Fortran interfaces: nfmpi_ and nf90mpi_. The file's name is the first argument.
program known_fortran_pnetcdf
    use mpi
    use pnetcdf
    implicit none
    integer :: error, rank, ranks, file, dim, x, y
    integer(mpi_offset_kind) :: start(1), count(1), total
    double precision :: values(100), back(100)
    integer :: numbers(100)
    character(len=1024) :: path

    call mpi_init(error)
    call mpi_comm_rank(mpi_comm_world, rank, error)
    call mpi_comm_size(mpi_comm_world, ranks, error)
    call get_command_argument(1, path)
    values = rank
    numbers = rank
    start = 100 * rank + 1
    count = 100
    total = 100 * ranks
    call check(nf90mpi_create(mpi_comm_world, trim(path), NF90_CLOBBER, mpi_info_null, file))
    call check(nf90mpi_def_dim(file, "x", total, dim))
    call check(nf90mpi_def_var(file, "x", NF90_DOUBLE, (/dim/), x))
    call check(nf90mpi_def_var(file, "y", NF90_INT, (/dim/), y))
    call check(nf90mpi_enddef(file))
    call check(nf90mpi_put_var_all(file, x, values, start, count))
    call check(nfmpi_put_vara_int_all(file, y, start, count, numbers))
    call check(nfmpi_get_vara_double_all(file, x, start, count, back))
    if (any(back /= values)) error stop "what was read is not what was written"
    call check(nf90mpi_close(file))
    call mpi_finalize(error)
contains
    subroutine check(code)
        integer, intent(in) :: code
        if (code /= NF90_NOERR) error stop "a PnetCDF call failed"
    end subroutine check
end program known_fortran_pnetcdf
