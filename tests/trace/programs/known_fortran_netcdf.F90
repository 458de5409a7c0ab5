! netCDF-4 through its Fortran 90 interface, without MPI. The file's name is the first argument.
program known_fortran_netcdf
    use netcdf
    implicit none
    integer :: file, dim, x
    double precision :: values(100), back(100)
    character(len=1024) :: path

    call get_command_argument(1, path)
    values = 7
    call check(nf90_create(trim(path), NF90_NETCDF4, file))
    call check(nf90_def_dim(file, "x", 100, dim))
    call check(nf90_def_var(file, "x", NF90_DOUBLE, dim, x))
    call check(nf90_put_var(file, x, values))
    call check(nf90_get_var(file, x, back, start=(/11/), count=(/90/)))
    if (any(back(1:90) /= 7)) error stop "what was read is not what was written"
    call check(nf90_close(file))
contains
    subroutine check(code)
        integer, intent(in) :: code
        if (code /= NF90_NOERR) error stop "a netCDF call failed"
    end subroutine check
end program known_fortran_netcdf
