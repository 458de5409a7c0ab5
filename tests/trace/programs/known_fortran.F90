! The same MPI-IO calls through one of Fortran's three interfaces: built with -DUSE_MPIF, -DUSE_MPI or -DUSE_MPI_F08.
! tests/trace/test_languages.py states the figures. known_fortran FILE OWN: FILE is shared, OWN gets the rank appended.
program known_fortran
#include "mpi_interface.inc"
#if defined(USE_MPI_F08)
  type(MPI_File) :: file
  type(MPI_Datatype) :: piece
  type(MPI_Status) :: status
#else
  integer :: file, piece
  integer :: status(MPI_STATUS_SIZE)
#endif
  integer :: rank, ranks, code, moved
  integer(kind=MPI_OFFSET_KIND) :: offset
  character(len=1024) :: shared, own
  character(len=2000) :: buffer
  character(len=8) :: digits

  buffer = repeat('f', 2000)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  call get_command_argument(1, shared)
  call get_command_argument(2, own)
  write (digits, '(i0)') rank
  own = trim(own) // '.' // trim(digits)

  call MPI_File_open(MPI_COMM_WORLD, trim(shared), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, code)
  call must(code == MPI_SUCCESS, 'open')
  ! 40 of every 40 * ranks bytes belong to this rank
  call MPI_Type_vector(3, 40, 40 * ranks, MPI_CHARACTER, piece, code)
  call MPI_Type_commit(piece, code)
  offset = 40 * rank
  call MPI_File_set_view(file, offset, MPI_CHARACTER, piece, 'native', MPI_INFO_NULL, code)
  call must(code == MPI_SUCCESS, 'set_view')
  offset = 0
  call MPI_File_write_at_all(file, offset, buffer, 120, MPI_CHARACTER, status, code)
  call must(code == MPI_SUCCESS, 'write_at_all')
  call MPI_Get_count(status, MPI_CHARACTER, moved, code)
  call must(moved == 120, 'count of write_at_all')
  call MPI_File_write_all(file, buffer, 120, MPI_CHARACTER, MPI_STATUS_IGNORE, code)
  call must(code == MPI_SUCCESS, 'write_all')
  call MPI_File_read_at_all(file, offset, buffer, 80, MPI_CHARACTER, status, code)
  call must(code == MPI_SUCCESS, 'read_at_all')
  call MPI_Get_count(status, MPI_CHARACTER, moved, code)
  call must(moved == 80, 'count of read_at_all')
  call MPI_File_close(file, code)
  call must(code == MPI_SUCCESS, 'close')

  call MPI_File_open(MPI_COMM_SELF, trim(own), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, code)
  call must(code == MPI_SUCCESS, 'open own')
  offset = 500
  call MPI_File_write_at(file, offset, buffer, 300 + rank, MPI_CHARACTER, status, code)
  call must(code == MPI_SUCCESS, 'write_at')
  call MPI_File_write_at(file, offset, buffer, 10, MPI_CHARACTER, MPI_STATUS_IGNORE, code)
  call MPI_File_write(file, buffer, 70, MPI_CHARACTER, status, code)
  call must(code == MPI_SUCCESS, 'write')
  call MPI_File_read_at(file, offset, buffer, 2000, MPI_CHARACTER, status, code) ! short: 300 + rank
  call must(code == MPI_SUCCESS, 'read_at')
  call MPI_Get_count(status, MPI_CHARACTER, moved, code)
  call must(moved == 300 + rank, 'count of read_at')
  call MPI_File_read_at(file, offset, buffer, 1999, MPI_CHARACTER, MPI_STATUS_IGNORE, code) ! short as well
  call MPI_File_read(file, buffer, 30, MPI_CHARACTER, status, code)
  call must(code == MPI_SUCCESS, 'read')
  call MPI_File_read_all(file, buffer, 31, MPI_CHARACTER, status, code)
  call must(code == MPI_SUCCESS, 'read_all')
  call MPI_File_close(file, code)
  call must(code == MPI_SUCCESS, 'close own')
  call MPI_Finalize(code)

contains
  subroutine must(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    integer :: ignored
    if (good) return
    write (0, *) 'rank ', rank, ': wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 77, ignored)
  end subroutine must
end program known_fortran
