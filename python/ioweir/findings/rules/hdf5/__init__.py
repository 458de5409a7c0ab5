"""What HDF5 adds."""
