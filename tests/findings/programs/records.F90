! Records as Fortran programs write them: records DIRECTORY API NUMBER PIECE. API: unit (a file a rank, unformatted
! stream), small or all (MPI-IO: a call each piece, or one collective call), NUMBER pieces of PIECE bytes a rank.
program records
    use mpi
    implicit none
    integer :: rank, ranks, wrong, number, piece, at, file, unit
    character(len=1024) :: directory, api, word, path
    character, allocatable :: values(:)
    integer(kind=MPI_OFFSET_KIND) :: place
    real(kind=8) :: began

    call MPI_Init(wrong)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, wrong)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, wrong)
    call get_command_argument(1, directory)
    call get_command_argument(2, api)
    call get_command_argument(3, word)
    read (word, *) number
    call get_command_argument(4, word)
    read (word, *) piece
    allocate (values(number*piece))
    values = achar(97 + rank)
    call MPI_Barrier(MPI_COMM_WORLD, wrong)
    began = MPI_Wtime()
    if (api == 'unit') then
        write (path, '(a,a,i0)') trim(directory), '/records.', rank
        open (newunit=unit, file=path, access='stream', form='unformatted', status='replace')
        do at = 0, number - 1
            write (unit) values(at*piece + 1:(at + 1)*piece)
            flush (unit)
        end do
        close (unit)
    else
        call MPI_File_open(MPI_COMM_WORLD, trim(directory)//'/records', MPI_MODE_CREATE + MPI_MODE_WRONLY, &
                           MPI_INFO_NULL, file, wrong)
        place = int(rank, MPI_OFFSET_KIND)*number*piece
        if (api == 'all') then
            call MPI_File_write_at_all(file, place, values, number*piece, MPI_BYTE, MPI_STATUS_IGNORE, wrong)
        else
            do at = 0, number - 1
                call MPI_File_write_at(file, place + at*piece, values(at*piece + 1), piece, MPI_BYTE, &
                                       MPI_STATUS_IGNORE, wrong)
            end do
        end if
        call MPI_File_close(file, wrong)
    end if
    call MPI_Barrier(MPI_COMM_WORLD, wrong)
    if (rank == 0) write (*, '(a,f0.6)') 'seconds ', MPI_Wtime() - began
    call MPI_Finalize(wrong)
end program records
