// An MPI library that ioweir has never heard of: as much of one as a program needs that only begins and ends MPI.
#pragma once
int MPI_Init(int* argc, char*** argv);
int MPI_Finalize(void);
