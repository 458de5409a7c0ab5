! Heat in a square plate, as heat.cpp: explicit in time, on a mesh that is divided into strips (here of columns, as Fortran stores them): parts. It checkpoints with
! the module of ioweir.h and goes on from the last complete set that it finds, on any number of ranks, in the same bits.
!
!     mpifort $(...) heat.f90 -o heat        flags: ioweir env --partition
!     heat BASE LAST_STEP EVERY
include 'ioweir/ioweir.f90'

program heat
    use, intrinsic :: iso_fortran_env, only: int64, real64, int32, error_unit
    use mpi_f08
    use ioweir
    implicit none
    integer(int64), parameter :: parts = 12
    integer, parameter :: rows = 48, width = 8
    character(11), parameter :: fields(2) = [character(11) :: 'temperature', 'columns']
    character(1024) :: base
    integer :: rank, ranks, mine, first
    integer(int64) :: now, last, every
    ! Of each part a column of its neighbours on either side.
    real(real64), allocatable :: cells(:, :, :), next(:, :, :)

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    if (command_argument_count() /= 3) call stop_with('usage: heat BASE LAST_STEP EVERY')
    call get_command_argument(1, base)
    last = number(2)
    every = number(3)
    first = first_of(rank)
    mine = first_of(rank + 1) - first
    allocate (cells(rows, 0:width + 1, mine), next(rows, 0:width + 1, mine))
    call begin()
    now = restart()
    if (rank == 0) print '(a, i0)', 'begins at step ', now
    do while (now < last)
        call step()
        now = now + 1
        if (mod(now, every) == 0) call checkpoint()
    end do
    call MPI_Finalize()

contains

    integer function first_of(owner)
        integer, intent(in) :: owner
        first_of = owner*(int(parts)/ranks) + min(owner, mod(int(parts), ranks))
    end function

    integer function owner_of(part)
        integer, intent(in) :: part
        owner_of = 0
        do while (first_of(owner_of + 1) <= part)
            owner_of = owner_of + 1
        end do
    end function

    integer(int64) function number(place)
        integer, intent(in) :: place
        character(64) :: word
        call get_command_argument(place, word)
        read (word, *) number
    end function

    subroutine begin()
        integer :: p, c, r, column
        do p = 1, mine
            do c = 1, width
                column = (first + p - 1)*width + c - 1
                do r = 1, rows
                    cells(r, c, p) = 20.0_real64 + 0.01_real64*mod(r, 7)
                    if (column > 30 .and. column < 70 .and. r < rows/3) cells(r, c, p) = 100.0_real64
                end do
            end do
        end do
    end subroutine

    ! Tags: which part (from 0) a column is for, and from which side it comes.
    subroutine exchange()
        type(MPI_Request) :: requests(4*mine)
        integer :: p, part, n
        n = 0
        do p = 1, mine
            part = first + p - 1
            if (part == 0) then
                cells(:, 0, p) = cells(:, 1, p)  ! no heat passes the border
            else
                call swap(p, 0, 1, part - 1, 2*part, 2*(part - 1) + 1, n, requests)
            end if
            if (part == parts - 1) then
                cells(:, width + 1, p) = cells(:, width, p)
            else
                call swap(p, width + 1, width, part + 1, 2*part + 1, 2*(part + 1), n, requests)
            end if
        end do
        call MPI_Waitall(n, requests, MPI_STATUSES_IGNORE)
    end subroutine

    subroutine swap(p, halo, edge, other, tag_in, tag_out, n, requests)
        integer, intent(in) :: p, halo, edge, other, tag_in, tag_out
        integer, intent(inout) :: n
        type(MPI_Request), intent(inout) :: requests(:)
        call MPI_Irecv(cells(1, halo, p), rows, MPI_DOUBLE_PRECISION, owner_of(other), tag_in, MPI_COMM_WORLD, requests(n + 1))
        call MPI_Isend(cells(1, edge, p), rows, MPI_DOUBLE_PRECISION, owner_of(other), tag_out, MPI_COMM_WORLD, requests(n + 2))
        n = n + 2
    end subroutine

    subroutine step()
        integer :: p, c, r
        real(real64) :: up, down
        call exchange()
        do p = 1, mine
            do c = 1, width
                do r = 1, rows
                    up = cells(max(r - 1, 1), c, p)
                    down = cells(min(r + 1, rows), c, p)
                    next(r, c, p) = cells(r, c, p) + 0.2_real64*(((cells(r, c - 1, p) + cells(r, c + 1, p)) + (up + down)) &
                        - 4.0_real64*cells(r, c, p))
                end do
            end do
        end do
        cells(:, 1:width, :) = next(:, 1:width, :)
    end subroutine

    subroutine checkpoint()
        type(ioweir_set) :: set
        integer :: p, c, most
        integer(int32) :: columns(width)
        integer(int64) :: part
        call check(ioweir_set_create(MPI_COMM_WORLD, base, now, int(mine, int64), 0_int64, fields, set))
        most = (int(parts) + ranks - 1)/ranks
        do p = 1, most
            part = p - 1
            if (p > mine) part = IOWEIR_NO_PART  ! writing is collective: who has fewer parts takes part without one
            if (p > mine) then
                call check(ioweir_set_write(set, 'temperature', part, IOWEIR_FLOAT64, 0_int64, columns))
                call check(ioweir_set_write(set, 'columns', part, IOWEIR_INT32, 0_int64, columns))
                cycle
            end if
            columns = [((first + p - 1)*width + c - 1, c=1, width)]
            call check(ioweir_set_write(set, 'temperature', part, IOWEIR_FLOAT64, int(rows*width, int64), cells(1, 1, p), &
                [int(rows, int64), int(width, int64)]))
            call check(ioweir_set_write(set, 'columns', part, IOWEIR_INT32, int(width, int64), columns))
        end do
        call check(ioweir_set_close(set))
    end subroutine

    ! The step that the plate has now: 0 if there is nothing to go on from.
    integer(int64) function restart()
        type(ioweir_set) :: set
        integer(int64) :: files, there, bytes, parameters(2)
        integer :: p, n, code
        restart = 0
        code = ioweir_set_open(MPI_COMM_WORLD, base, -1_int64, set)
        if (code == IOWEIR_ERR_NOT_FOUND) return
        call check(code)
        call check(ioweir_set_inquire(set, restart, files, there, n))
        if (there /= parts) call stop_with('the set has other parts')
        do p = 1, mine
            call check(ioweir_set_query(set, 'temperature', int(first + p, int64), bytes, n, parameters))
            if (n /= 2 .or. parameters(1) /= rows .or. parameters(2) /= width) call stop_with('parts of another size')
            call check(ioweir_set_read(set, 'temperature', int(first + p, int64), IOWEIR_FLOAT64, bytes, cells(1, 1, p)))
        end do
        call check(ioweir_set_close(set))
    end function

    subroutine check(code)
        integer, intent(in) :: code
        if (code /= IOWEIR_SUCCESS) call stop_with(ioweir_error_text())
    end subroutine

    subroutine stop_with(text)
        character(*), intent(in) :: text
        write (error_unit, '(a)') text
        call MPI_Abort(MPI_COMM_WORLD, 1)
    end subroutine
end program
