! ioweir.f90: ioweir.h as a Fortran module, with mpi_f08 (Fortran 2008 and TS 29113). Modules are a compiler's own, so it is compiled with the program: one of its sources begins with
!
!     include 'ioweir/ioweir.f90'
!
! and is compiled with what `ioweir env --partition` prints. The others `use ioweir`.
! What arguments mean, their units, and on which ranks they matter is in ioweir.h. All functions return IOWEIR_SUCCESS or a code; ioweir_error_text() says what happened.
! Names are trimmed. Arrays of items are real(real64) or integer(int32) of any rank, in their order in memory; `type` says which.
! Parts count as in C: in ioweir_set_write from 0 on each rank, in ioweir_set_query and ioweir_set_read from 1 among all.
module ioweir
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int64
    use mpi_f08, only: MPI_Comm, MPI_Info, MPI_INFO_NULL
    implicit none
    private

    integer, parameter, public :: IOWEIR_SUCCESS = 0, IOWEIR_ERR_ARGUMENT = 1, IOWEIR_ERR_IO = 2, &
        IOWEIR_ERR_NO_SPACE = 3, IOWEIR_ERR_NOT_FOUND = 4, IOWEIR_ERR_DAMAGED = 5, IOWEIR_ERR_EXISTS = 6, &
        IOWEIR_ERR_MEMORY = 7, IOWEIR_ERR_MPI = 8
    integer, parameter, public :: IOWEIR_FLOAT64 = 1, IOWEIR_INT32 = 2
    integer(int64), parameter, public :: IOWEIR_NO_PART = -1

    type, public :: ioweir_set
        private
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: ioweir_service
        private
        type(c_ptr) :: handle = c_null_ptr
    end type

    public :: ioweir_set_create, ioweir_set_create_by, ioweir_set_write, ioweir_set_close, ioweir_set_abandon
    public :: ioweir_set_open, ioweir_set_inquire, ioweir_set_my_parts, ioweir_set_query, ioweir_set_read, ioweir_set_read_all
    public :: ioweir_split, ioweir_service_run, ioweir_service_wait, ioweir_service_end, ioweir_error_text

    ! Those that end in _f take handles as Fortran's integers; the others are ioweir.h's.
    interface
        integer(c_int) function create_f(comm, base, step, parts, files, n_fields, fields, info, set) &
            bind(C, name="ioweir_set_create_f")
            import
            integer(c_int), value :: comm, n_fields, info
            character(kind=c_char), intent(in) :: base(*)
            integer(c_int64_t), value :: step, parts, files
            type(c_ptr), intent(in) :: fields(*)
            type(c_ptr), intent(out) :: set
        end function
        integer(c_int) function create_by_f(service, base, step, parts, files, n_fields, fields, info, set) &
            bind(C, name="ioweir_set_create_by_f")
            import
            type(c_ptr), value :: service
            integer(c_int), value :: n_fields, info
            character(kind=c_char), intent(in) :: base(*)
            integer(c_int64_t), value :: step, parts, files
            type(c_ptr), intent(in) :: fields(*)
            type(c_ptr), intent(out) :: set
        end function
        integer(c_int) function open_f(comm, base, step, info, set) bind(C, name="ioweir_set_open_f")
            import
            integer(c_int), value :: comm, info
            character(kind=c_char), intent(in) :: base(*)
            integer(c_int64_t), value :: step
            type(c_ptr), intent(out) :: set
        end function
        integer(c_int) function split_f(comm, delegates, info, workers, service) bind(C, name="ioweir_split_f")
            import
            integer(c_int), value :: comm, info
            integer(c_int64_t), value :: delegates
            integer(c_int), intent(out) :: workers
            type(c_ptr), intent(out) :: service
        end function
        integer(c_int) function write_c(set, field, part, item_type, items, n_parameters, parameters, data) &
            bind(C, name="ioweir_set_write")
            import
            type(c_ptr), value :: set
            character(kind=c_char), intent(in) :: field(*)
            integer(c_int64_t), value :: part, items
            integer(c_int), value :: item_type, n_parameters
            integer(c_int64_t), intent(in) :: parameters(*)
            type(*), intent(in) :: data(*)
        end function
        integer(c_int) function close_c(set) bind(C, name="ioweir_set_close")
            import
            type(c_ptr), intent(inout) :: set
        end function
        integer(c_int) function abandon_c(set) bind(C, name="ioweir_set_abandon")
            import
            type(c_ptr), intent(inout) :: set
        end function
        integer(c_int) function inquire_c(set, step, files, parts, n_fields) bind(C, name="ioweir_set_inquire")
            import
            type(c_ptr), value :: set
            integer(c_int64_t), intent(out) :: step, files, parts
            integer(c_int), intent(out) :: n_fields
        end function
        integer(c_int) function my_parts_c(set, first, count) bind(C, name="ioweir_set_my_parts")
            import
            type(c_ptr), value :: set
            integer(c_int64_t), intent(out) :: first, count
        end function
        integer(c_int) function query_c(set, field, part, bytes, n_parameters, parameters) &
            bind(C, name="ioweir_set_query")
            import
            type(c_ptr), value :: set
            character(kind=c_char), intent(in) :: field(*)
            integer(c_int64_t), value :: part
            integer(c_int64_t), intent(out) :: bytes
            integer(c_int), intent(inout) :: n_parameters
            integer(c_int64_t), intent(inout) :: parameters(*)
        end function
        integer(c_int) function read_c(set, field, part, item_type, bytes, data) bind(C, name="ioweir_set_read")
            import
            type(c_ptr), value :: set
            character(kind=c_char), intent(in) :: field(*)
            integer(c_int64_t), value :: part, bytes
            integer(c_int), value :: item_type
            type(*), intent(inout) :: data(*)
        end function
        integer(c_int) function read_all_c(set, field, part, item_type, bytes, data) bind(C, name="ioweir_set_read_all")
            import
            type(c_ptr), value :: set
            character(kind=c_char), intent(in) :: field(*)
            integer(c_int64_t), value :: part, bytes
            integer(c_int), value :: item_type
            type(*), intent(inout) :: data(*)
        end function
        integer(c_int) function run_c(service) bind(C, name="ioweir_service_run")
            import
            type(c_ptr), value :: service
        end function
        integer(c_int) function wait_c(service) bind(C, name="ioweir_service_wait")
            import
            type(c_ptr), value :: service
        end function
        integer(c_int) function end_c(service) bind(C, name="ioweir_service_end")
            import
            type(c_ptr), intent(inout) :: service
        end function
        type(c_ptr) function error_text_c() bind(C, name="ioweir_error_text")
            import
        end function
        integer(c_size_t) function strlen(text) bind(C)
            import
            type(c_ptr), value :: text
        end function
    end interface

contains

    ! Collective over `comm`.
    integer function ioweir_set_create(comm, base, step, parts, files, fields, set, info) result(code)
        type(MPI_Comm), intent(in) :: comm
        character(*), intent(in) :: base, fields(:)
        integer(int64), intent(in) :: step, parts, files
        type(ioweir_set), intent(out) :: set
        type(MPI_Info), intent(in), optional :: info
        character(kind=c_char), allocatable, target :: names(:, :)
        type(c_ptr), allocatable :: pointers(:)
        call c_names(fields, names, pointers)
        code = create_f(comm%MPI_VAL, c_text(base), step, parts, files, size(fields), pointers, info_of(info), set%handle)
    end function

    ! Collective over the workers.
    integer function ioweir_set_create_by(service, base, step, parts, files, fields, set, info) result(code)
        type(ioweir_service), intent(in) :: service
        character(*), intent(in) :: base, fields(:)
        integer(int64), intent(in) :: step, parts, files
        type(ioweir_set), intent(out) :: set
        type(MPI_Info), intent(in), optional :: info
        character(kind=c_char), allocatable, target :: names(:, :)
        type(c_ptr), allocatable :: pointers(:)
        call c_names(fields, names, pointers)
        code = create_by_f(service%handle, c_text(base), step, parts, files, size(fields), pointers, info_of(info), &
            set%handle)
    end function

    integer function ioweir_set_write(set, field, part, item_type, items, data, parameters) result(code)
        type(ioweir_set), intent(in) :: set
        character(*), intent(in) :: field
        integer(int64), intent(in) :: part, items
        integer, intent(in) :: item_type
        type(*), intent(in) :: data(*)
        integer(int64), intent(in), optional :: parameters(:)
        integer(int64), allocatable :: given(:)
        allocate (given(0))
        if (present(parameters)) given = parameters
        code = write_c(set%handle, c_text(field), part, item_type, items, size(given), given, data)
    end function

    integer function ioweir_set_close(set) result(code)
        type(ioweir_set), intent(inout) :: set
        code = close_c(set%handle)
    end function

    integer function ioweir_set_abandon(set) result(code)
        type(ioweir_set), intent(inout) :: set
        code = abandon_c(set%handle)
    end function

    ! Collective over `comm`. step -1: the last complete one.
    integer function ioweir_set_open(comm, base, step, set, info) result(code)
        type(MPI_Comm), intent(in) :: comm
        character(*), intent(in) :: base
        integer(int64), intent(in) :: step
        type(ioweir_set), intent(out) :: set
        type(MPI_Info), intent(in), optional :: info
        code = open_f(comm%MPI_VAL, c_text(base), step, info_of(info), set%handle)
    end function

    integer function ioweir_set_inquire(set, step, files, parts, n_fields) result(code)
        type(ioweir_set), intent(in) :: set
        integer(int64), intent(out) :: step, files, parts
        integer, intent(out) :: n_fields
        code = inquire_c(set%handle, step, files, parts, n_fields)
    end function

    integer function ioweir_set_my_parts(set, first, count) result(code)
        type(ioweir_set), intent(in) :: set
        integer(int64), intent(out) :: first, count
        code = my_parts_c(set%handle, first, count)
    end function

    ! parameters: as many as there are, at most its size, which `n_parameters` may exceed.
    integer function ioweir_set_query(set, field, part, bytes, n_parameters, parameters) result(code)
        type(ioweir_set), intent(in) :: set
        character(*), intent(in) :: field
        integer(int64), intent(in) :: part
        integer(int64), intent(out) :: bytes
        integer, intent(out) :: n_parameters
        integer(int64), intent(inout), contiguous :: parameters(:)
        n_parameters = size(parameters)
        code = query_c(set%handle, c_text(field), part, bytes, n_parameters, parameters)
    end function

    integer function ioweir_set_read(set, field, part, item_type, bytes, data) result(code)
        type(ioweir_set), intent(in) :: set
        character(*), intent(in) :: field
        integer(int64), intent(in) :: part, bytes
        integer, intent(in) :: item_type
        type(*), intent(inout) :: data(*)
        code = read_c(set%handle, c_text(field), part, item_type, bytes, data)
    end function

    ! Collective over the set's communicator. part: of this rank's share, or IOWEIR_NO_PART.
    integer function ioweir_set_read_all(set, field, part, item_type, bytes, data) result(code)
        type(ioweir_set), intent(in) :: set
        character(*), intent(in) :: field
        integer(int64), intent(in) :: part, bytes
        integer, intent(in) :: item_type
        type(*), intent(inout) :: data(*)
        code = read_all_c(set%handle, c_text(field), part, item_type, bytes, data)
    end function

    ! Collective over `comm`. workers: MPI_COMM_NULL on delegates.
    integer function ioweir_split(comm, delegates, workers, service, info) result(code)
        type(MPI_Comm), intent(in) :: comm
        integer(int64), intent(in) :: delegates
        type(MPI_Comm), intent(out) :: workers
        type(ioweir_service), intent(out) :: service
        type(MPI_Info), intent(in), optional :: info
        code = split_f(comm%MPI_VAL, delegates, info_of(info), workers%MPI_VAL, service%handle)
    end function

    integer function ioweir_service_run(service) result(code)
        type(ioweir_service), intent(in) :: service
        code = run_c(service%handle)
    end function

    integer function ioweir_service_wait(service) result(code)
        type(ioweir_service), intent(in) :: service
        code = wait_c(service%handle)
    end function

    integer function ioweir_service_end(service) result(code)
        type(ioweir_service), intent(inout) :: service
        code = end_c(service%handle)
    end function

    ! Of the last call that failed.
    function ioweir_error_text() result(text)
        character(:), allocatable :: text
        type(c_ptr) :: from
        character(kind=c_char), pointer :: letters(:)
        integer :: i
        from = error_text_c()
        call c_f_pointer(from, letters, [strlen(from)])
        allocate (character(size(letters)) :: text)
        do i = 1, size(letters)
            text(i:i) = letters(i)
        end do
    end function

    function c_text(text) result(letters)
        character(*), intent(in) :: text
        character(kind=c_char) :: letters(len_trim(text) + 1)
        integer :: i
        do i = 1, len_trim(text)
            letters(i) = text(i:i)
        end do
        letters(len_trim(text) + 1) = c_null_char
    end function

    subroutine c_names(fields, names, pointers)
        character(*), intent(in) :: fields(:)
        character(kind=c_char), allocatable, target, intent(out) :: names(:, :)
        type(c_ptr), allocatable, intent(out) :: pointers(:)
        integer :: i
        allocate (names(len(fields) + 1, size(fields)), pointers(size(fields)))
        do i = 1, size(fields)
            names(:, i) = c_null_char
            names(1:len_trim(fields(i)) + 1, i) = c_text(fields(i))
            pointers(i) = c_loc(names(1, i))
        end do
    end subroutine

    integer(c_int) function info_of(info)
        type(MPI_Info), intent(in), optional :: info
        info_of = MPI_INFO_NULL%MPI_VAL
        if (present(info)) info_of = info%MPI_VAL
    end function
end module
