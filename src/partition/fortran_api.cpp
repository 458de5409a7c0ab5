// What include/ioweir/ioweir.f90 calls where ioweir.h takes MPI's handles, which are integers in Fortran.
#include "ioweir/ioweir.h"

extern "C" {

#define IOWEIR_API __attribute__((visibility("default")))

IOWEIR_API int ioweir_set_create_f(MPI_Fint comm, const char* base, int64_t step, int64_t parts, int64_t files,
                                   int n_fields, const char* const* fields, MPI_Fint info, ioweir_set** set) {
    return ioweir_set_create(MPI_Comm_f2c(comm), base, step, parts, files, n_fields, fields, MPI_Info_f2c(info), set);
}

IOWEIR_API int ioweir_set_create_by_f(ioweir_service* service, const char* base, int64_t step, int64_t parts,
                                      int64_t files, int n_fields, const char* const* fields, MPI_Fint info,
                                      ioweir_set** set) {
    return ioweir_set_create_by(service, base, step, parts, files, n_fields, fields, MPI_Info_f2c(info), set);
}

IOWEIR_API int ioweir_set_open_f(MPI_Fint comm, const char* base, int64_t step, MPI_Fint info, ioweir_set** set) {
    return ioweir_set_open(MPI_Comm_f2c(comm), base, step, MPI_Info_f2c(info), set);
}

IOWEIR_API int ioweir_split_f(MPI_Fint comm, int64_t delegates, MPI_Fint info, MPI_Fint* workers,
                              ioweir_service** service) {
    MPI_Comm own = MPI_COMM_NULL;
    const int code = ioweir_split(MPI_Comm_f2c(comm), delegates, MPI_Info_f2c(info), &own, service);
    *workers = MPI_Comm_c2f(own);
    return code;
}
}
