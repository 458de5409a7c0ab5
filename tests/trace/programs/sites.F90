! As sites.c, in Fortran: a module procedure through mpif.h's bindings.
module output
  implicit none
  include 'mpif.h'
contains
  subroutine write_field(file, rank)
    integer, intent(in) :: file, rank
    integer :: error, status(MPI_STATUS_SIZE)
    integer(kind=MPI_OFFSET_KIND) :: at
    character :: buffer(500)
    buffer = 'f'
    at = 500 * rank
    call MPI_File_write_at(file, at, buffer, 500, MPI_BYTE, status, error) ! LINE checkpoint
  end subroutine
end module

program sites
  use output
  implicit none
  integer :: error, rank, file, i
  character(len=2048) :: directory
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call get_command_argument(1, directory)
  call MPI_File_open(MPI_COMM_WORLD, trim(directory)//'/shared', MPI_MODE_CREATE + MPI_MODE_RDWR, &
                     MPI_INFO_NULL, file, error)
  do i = 1, 3
    call write_field(file, rank)
  end do
  call MPI_File_close(file, error)
  call MPI_Finalize(error)
end program
