! Fill values through PnetCDF's Fortran interfaces: netcdf_fill FILE 77|90, by nfmpi_ or nf90mpi_. Rank 0 says every code and value.
program netcdf_fill
    use mpi
    use pnetcdf
    implicit none
    integer, parameter :: columns = 10, rows = 8, records = 3
    integer :: error, rank, ranks, file, dims(3), cube, plane, line, bare, old, none, filled, i
    integer(mpi_offset_kind) :: start(3), count(3), record, one = 1
    integer :: numbers(columns * rows)
    double precision :: value
    character(len=1024) :: path, form

    call mpi_init(error)
    call mpi_comm_rank(mpi_comm_world, rank, error)
    call mpi_comm_size(mpi_comm_world, ranks, error)
    call get_command_argument(1, path)
    call get_command_argument(2, form)
    call say("create", nfmpi_create(mpi_comm_world, trim(path), NF_CLOBBER, mpi_info_null, file))
    call say("x", nfmpi_def_dim(file, "x", int(columns, mpi_offset_kind), dims(1)))
    call say("z", nfmpi_def_dim(file, "z", int(rows, mpi_offset_kind), dims(2)))
    call say("t", nfmpi_def_dim(file, "t", nfmpi_unlimited, dims(3)))
    numbers(1) = -99
    if (form == "77") then
        call say("set_fill", nfmpi_set_fill(file, NF_FILL, old))
        call say("def_var", nfmpi_def_var(file, "cube", NF_INT, 3, dims, cube))
        call say("put_att", nfmpi_put_att_int(file, cube, "_FillValue", NF_INT, one, numbers))
        call say("def_var", nfmpi_def_var(file, "plane", NF_DOUBLE, 2, dims, plane))
        value = 2.5d0
        call say("def_var_fill", nfmpi_def_var_fill(file, plane, 0, value))
        call say("def_var", nfmpi_def_var(file, "line", NF_FLOAT, 2, (/dims(1), dims(3)/), line))
        call say("def_var", nfmpi_def_var(file, "bare", NF_INT, 3, dims, bare))
        call say("def_var_fill", nfmpi_def_var_fill(file, bare, 1, numbers))
        call say("enddef", nfmpi_enddef(file))
    else
        call say("set_fill", nf90mpi_set_fill(file, NF90_FILL, old))
        call say("def_var", nf90mpi_def_var(file, "cube", NF90_INT, dims, cube))
        call say("put_att", nf90mpi_put_att(file, cube, "_FillValue", numbers(1)))
        call say("def_var", nf90mpi_def_var(file, "plane", NF90_DOUBLE, dims(1:2), plane))
        value = 2.5d0
        call say("def_var_fill", nf90mpi_def_var_fill(file, plane, 0, value))
        call say("def_var", nf90mpi_def_var(file, "line", NF90_FLOAT, (/dims(1), dims(3)/), line))
        call say("def_var", nf90mpi_def_var(file, "bare", NF90_INT, dims, bare))
        call say("def_var_fill", nf90mpi_def_var_fill(file, bare, 1, numbers(1)))
        call say("enddef", nf90mpi_enddef(file))
    end if
    call say("old mode", old)
    do i = 1, records
        record = i
        if (form == "77") then
            call say("fill_var_rec", nfmpi_fill_var_rec(file, cube, record))
            call say("fill_var_rec", nfmpi_fill_var_rec(file, line, record))
            call say("fill_var_rec", nfmpi_fill_var_rec(file, bare, record))
        else
            call say("fill_var_rec", nf90mpi_fill_var_rec(file, cube, record))
            call say("fill_var_rec", nf90mpi_fill_var_rec(file, line, record))
            call say("fill_var_rec", nf90mpi_fill_var_rec(file, bare, record))
        end if
    end do
    ! Each rank a row of the second record and of the plane.
    start = (/1, mod(rank, rows) + 1, 2/)
    count = (/columns, 1, 1/)
    numbers = 1000 + rank
    call say("put", nfmpi_put_vara_int_all(file, cube, start, count, numbers))
    call say("put", nfmpi_put_vara_int_all(file, plane, start(1:2), count(1:2), numbers))
    call say("inq_var_fill", nfmpi_inq_var_fill(file, cube, none, filled))
    call say("none", none)
    call say("value", filled)
    numbers = 7
    call say("put bare", nfmpi_put_vara_int_all(file, bare, (/one, one, one/), &
        (/int(columns, mpi_offset_kind), int(rows, mpi_offset_kind), one/), numbers))
    call say("close", nfmpi_close(file))
    call mpi_finalize(error)
contains
    subroutine say(what, code)
        character(len=*), intent(in) :: what
        integer, intent(in) :: code
        if (rank == 0) print '(a, ": ", i0)', what, code
    end subroutine say
end program netcdf_fill
