! HDF5 through its Fortran interface: one file, one dataset, 1000 doubles a rank. The file's name is the first argument.
program known_fortran_hdf5
    use mpi
    use hdf5
    implicit none
    integer :: error, rank, ranks
    integer(hid_t) :: access, transfer, file, space, part, set
    integer(hsize_t) :: whole(1), begin(1), count(1)
    double precision :: values(1000), back(1000)
    character(len=1024) :: path

    call mpi_init(error)
    call mpi_comm_rank(mpi_comm_world, rank, error)
    call mpi_comm_size(mpi_comm_world, ranks, error)
    call get_command_argument(1, path)
    values = rank
    count = 1000
    whole = 1000 * ranks
    begin = 1000 * rank
    call h5open_f(error)
    call h5pcreate_f(H5P_FILE_ACCESS_F, access, error)
    call h5pset_fapl_mpio_f(access, mpi_comm_world, mpi_info_null, error)
    call h5pcreate_f(H5P_DATASET_XFER_F, transfer, error)
    call h5pset_dxpl_mpio_f(transfer, H5FD_MPIO_COLLECTIVE_F, error)
    call h5fcreate_f(trim(path), H5F_ACC_TRUNC_F, file, error, access_prp=access)
    call h5screate_simple_f(1, whole, space, error)
    call h5screate_simple_f(1, count, part, error)
    call h5dcreate_f(file, "x", H5T_NATIVE_DOUBLE, space, set, error)
    call h5sselect_hyperslab_f(space, H5S_SELECT_SET_F, begin, count, error)
    call h5dwrite_f(set, H5T_NATIVE_DOUBLE, values, count, error, part, space, transfer)
    call h5dread_f(set, H5T_NATIVE_DOUBLE, back, count, error, part, space, transfer)
    if (error /= 0 .or. any(back /= values)) error stop "what was read is not what was written"
    call h5dclose_f(set, error)
    call h5fclose_f(file, error)
    call h5close_f(error)
    call mpi_finalize(error)
end program known_fortran_hdf5
