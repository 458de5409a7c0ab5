! all_mpi_calls.c in Fortran: the same calls with the same figures (test_mpi_calls.py), through one of the three interfaces:
! built with -DUSE_MPIF, -DUSE_MPI or -DUSE_MPI_F08. Requests are completed in eight ways (requests.c has them in C).
! Usage: all_mpi_calls FOLDER
program all_mpi_calls
#include "mpi_interface.inc"
#if defined(USE_MPI_F08)
  type(MPI_File) :: fh
  type(MPI_Request) :: request, requests(2)
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Group) :: group
  type(MPI_Info) :: info
  type(MPI_Datatype) :: etype, filetype
#else
  integer :: fh, request, requests(2), group, info, etype, filetype
  integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2)
#endif
  integer :: rank, code, number, found, indices(2)
  logical :: flag
  integer(kind=MPI_OFFSET_KIND) :: own, offset, place
  integer(kind=MPI_ADDRESS_KIND) :: extent
  character(len=1000) :: path
  character(len=64) :: datarep
  ! a variable of its own for each kind of operation: the buffers of pending ones are not touched
  character(len=4096) :: out, in

  out = repeat('x', 4096)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call get_command_argument(1, path)
  path = trim(path) // '/all'
  call MPI_File_open(MPI_COMM_WORLD, trim(path), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh, code)
  call good('open')
  offset = 100000
  call MPI_File_set_size(fh, offset, code)
  offset = 120000
  call MPI_File_preallocate(fh, offset, code)
  call good('preallocate')
  offset = 0
  call MPI_File_set_view(fh, offset, MPI_BYTE, MPI_BYTE, 'native', MPI_INFO_NULL, code)
  call good('set_view')
  call MPI_File_get_size(fh, offset, code)
  call MPI_File_get_group(fh, group, code)
  call MPI_Group_free(group, code)
  call MPI_File_get_amode(fh, number, code)
  call MPI_File_get_info(fh, info, code)
  call MPI_File_set_info(fh, info, code)
  call MPI_Info_free(info, code)
  call MPI_File_get_view(fh, offset, etype, filetype, datarep, code)
  call MPI_File_get_type_extent(fh, MPI_INTEGER, extent, code)
  offset = 17
  call MPI_File_get_byte_offset(fh, offset, place, code)
  call MPI_File_set_atomicity(fh, .false., code)
  call MPI_File_get_atomicity(fh, flag, code)
  call good('get_atomicity')
  own = 1000 * rank

  call MPI_File_write_at(fh, own, out, 11, MPI_BYTE, status, code)
  call MPI_File_write_at_all(fh, own, out, 12, MPI_BYTE, MPI_STATUS_IGNORE, code)
  call MPI_File_seek(fh, own, MPI_SEEK_SET, code)
  call MPI_File_write(fh, out, 13, MPI_BYTE, status, code)
  call MPI_File_write_all(fh, out, 14, MPI_BYTE, status, code)
  call MPI_File_get_position(fh, offset, code)
  call MPI_File_write_at_all_begin(fh, own, out, 15, MPI_BYTE, code)
  call MPI_File_write_at_all_end(fh, out, MPI_STATUS_IGNORE, code)
  call MPI_File_write_all_begin(fh, out, 16, MPI_BYTE, code)
  call MPI_File_write_all_end(fh, out, status, code)
  call good('write_all_end')
  call MPI_File_iwrite_at(fh, own, out, 17, MPI_BYTE, request, code)
  call MPI_Wait(request, MPI_STATUS_IGNORE, code)
  call MPI_File_iwrite(fh, out, 18, MPI_BYTE, request, code)
  flag = .false.
  do while (.not. flag)
    call MPI_Test(request, flag, status, code)
  end do
  requests = MPI_REQUEST_NULL
  call MPI_File_iwrite_at_all(fh, own, out, 19, MPI_BYTE, requests(1), code)
  call MPI_Waitall(2, requests, statuses, code)
  call MPI_File_iwrite_all(fh, out, 20, MPI_BYTE, requests(2), code)
  ! (MPICH 4.0's mpi_f08 counts the index from 0: it is not looked at)
  call MPI_Waitany(2, requests, found, status, code)
  call MPI_File_sync(fh, code)
  call good('sync')
  call MPI_Barrier(MPI_COMM_WORLD, code)

  offset = 50000
  call MPI_File_seek_shared(fh, offset, MPI_SEEK_SET, code)
  call MPI_File_write_shared(fh, out, 21, MPI_BYTE, status, code)
  call MPI_File_write_ordered(fh, out, 22, MPI_BYTE, status, code)
  call MPI_File_write_ordered_begin(fh, out, 23, MPI_BYTE, code)
  call MPI_File_write_ordered_end(fh, out, status, code)
  call MPI_File_iwrite_shared(fh, out, 24, MPI_BYTE, requests(1), code)
  call MPI_Waitsome(2, requests, found, indices, statuses, code)
  if (found /= 1) call MPI_Abort(MPI_COMM_WORLD, 9, code)
  call MPI_File_get_position_shared(fh, offset, code)
  call MPI_File_sync(fh, code)
  call good('second sync')
  call MPI_Barrier(MPI_COMM_WORLD, code)
  offset = 50000
  call MPI_File_seek_shared(fh, offset, MPI_SEEK_SET, code)
  call MPI_File_read_shared(fh, in, 31, MPI_BYTE, status, code)
  call MPI_File_read_ordered(fh, in, 32, MPI_BYTE, MPI_STATUS_IGNORE, code)
  call MPI_File_read_ordered_begin(fh, in, 33, MPI_BYTE, code)
  call MPI_File_read_ordered_end(fh, in, status, code)
  call MPI_File_iread_shared(fh, in, 34, MPI_BYTE, requests(1), code)
  flag = .false.
  do while (.not. flag)
    call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE, code)
  end do
  call good('iread_shared')

  offset = 0
  call MPI_File_seek(fh, offset, MPI_SEEK_SET, code)
  call MPI_File_read_at(fh, own, in, 41, MPI_BYTE, status, code)
  call MPI_File_read_at_all(fh, own, in, 42, MPI_BYTE, status, code)
  call MPI_File_read(fh, in, 43, MPI_BYTE, MPI_STATUS_IGNORE, code)
  call MPI_File_read_all(fh, in, 44, MPI_BYTE, status, code)
  call MPI_File_read_at_all_begin(fh, own, in, 45, MPI_BYTE, code)
  call MPI_File_read_at_all_end(fh, in, status, code)
  call MPI_File_read_all_begin(fh, in, 46, MPI_BYTE, code)
  call MPI_File_read_all_end(fh, in, MPI_STATUS_IGNORE, code)
  call MPI_File_iread_at(fh, own, in, 47, MPI_BYTE, requests(2), code)
  flag = .false.
  do while (.not. flag)
    call MPI_Testany(2, requests, found, flag, status, code)
  end do
  call MPI_File_iread(fh, in, 48, MPI_BYTE, requests(2), code)
  found = 0
  do while (found == 0)
    call MPI_Testsome(2, requests, found, indices, statuses, code)
  end do
  call MPI_File_iread_at_all(fh, own, in, 49, MPI_BYTE, request, code)
  call MPI_Wait(request, MPI_STATUS_IGNORE, code)
  call MPI_File_iread_all(fh, in, 50, MPI_BYTE, request, code)
  call MPI_Wait(request, status, code)
  call good('iread_all')
  call MPI_File_close(fh, code)
  call good('close')
  call MPI_Barrier(MPI_COMM_WORLD, code)
  if (rank == 0) call MPI_File_delete(trim(path), MPI_INFO_NULL, code)
  call good('delete')
  call MPI_Finalize(code)

contains
  subroutine good(what)
    character(len=*), intent(in) :: what
    integer :: ignored
    if (code == MPI_SUCCESS) return
    write (0, *) 'rank ', rank, ': wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 77, ignored)
  end subroutine good
end program all_mpi_calls
