// The standard ABI of MPI 5.0 (chapter "Application Binary Interface"), as far as a back end uses it. Stands in for an MPI
// library's own <mpi.h>: what is compiled against it works with every library that has the standard ABI (libmpi_abi.so).
// Values and layouts are the standard's. What does not live here: anything that only programs call.
#pragma once

#include <stdint.h>

#define MPI_VERSION 5

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

typedef struct MPI_ABI_Comm* MPI_Comm;
typedef struct MPI_ABI_Datatype* MPI_Datatype;
typedef struct MPI_ABI_Errhandler* MPI_Errhandler;
typedef struct MPI_ABI_File* MPI_File;
typedef struct MPI_ABI_Group* MPI_Group;
typedef struct MPI_ABI_Info* MPI_Info;
typedef struct MPI_ABI_Op* MPI_Op;
typedef struct MPI_ABI_Request* MPI_Request;

#define MPI_DISPLACEMENT_CURRENT ((MPI_Offset)(-1))
#define MPI_COMM_NULL ((MPI_Comm)0x100)
#define MPI_COMM_SELF ((MPI_Comm)0x102)
#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_BYTE ((MPI_Datatype)0x247)
#define MPI_CHAR ((MPI_Datatype)0x243)
#define MPI_CHARACTER ((MPI_Datatype)0x21e)
#define MPI_DATATYPE_NULL ((MPI_Datatype)0x200)
#define MPI_DOUBLE ((MPI_Datatype)0x214)
#define MPI_DOUBLE_PRECISION ((MPI_Datatype)0x21c)
#define MPI_FLOAT ((MPI_Datatype)0x210)
#define MPI_INT ((MPI_Datatype)0x209)
#define MPI_INT32_T ((MPI_Datatype)0x250)
#define MPI_INT64_T ((MPI_Datatype)0x258)
#define MPI_INTEGER ((MPI_Datatype)0x219)
#define MPI_LONG ((MPI_Datatype)0x20a)
#define MPI_LONG_LONG ((MPI_Datatype)0x20b)
#define MPI_REAL ((MPI_Datatype)0x21a)
#define MPI_SHORT ((MPI_Datatype)0x208)
#define MPI_SHORT_INT ((MPI_Datatype)0x22c)
#define MPI_SIGNED_CHAR ((MPI_Datatype)0x244)
#define MPI_UNSIGNED ((MPI_Datatype)0x20d)
#define MPI_UNSIGNED_CHAR ((MPI_Datatype)0x245)
#define MPI_UNSIGNED_LONG ((MPI_Datatype)0x20e)
#define MPI_UNSIGNED_LONG_LONG ((MPI_Datatype)0x20f)
#define MPI_UNSIGNED_SHORT ((MPI_Datatype)0x20c)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)0x143)
#define MPI_FILE_NULL ((MPI_File)0x118)
#define MPI_INFO_NULL ((MPI_Info)0x130)
#define MPI_BOR ((MPI_Op)0x29)
#define MPI_MAX ((MPI_Op)0x23)
#define MPI_MIN ((MPI_Op)0x22)
#define MPI_SUM ((MPI_Op)0x21)
#define MPI_REQUEST_NULL ((MPI_Request)0x180)

typedef int(MPI_Comm_copy_attr_function)(MPI_Comm, int, void*, void*, void*, int*);
typedef int(MPI_Comm_delete_attr_function)(MPI_Comm, int, void*, void*);
typedef int(MPI_Grequest_cancel_function)(void*, int);
typedef int(MPI_Grequest_free_function)(void*);
typedef int(MPI_Grequest_query_function)(void*, MPI_Status*);
typedef int(MPI_Type_copy_attr_function)(MPI_Datatype, int, void*, void*, void*, int*);
typedef int(MPI_Type_delete_attr_function)(MPI_Datatype, int, void*, void*);

#define MPI_BOTTOM ((void*)0)
#define MPI_IN_PLACE ((void*)1)
#define MPI_MAX_LIBRARY_VERSION_STRING 8192
#define MPI_MAX_OBJECT_NAME 128
#define MPI_STATUSES_IGNORE ((MPI_Status*)0)
#define MPI_STATUS_IGNORE ((MPI_Status*)0)
#define MPI_TYPE_NULL_COPY_FN ((MPI_Type_copy_attr_function*)0x0)

enum {
    MPI_UNDEFINED = -32766,
    MPI_ANY_TAG = -2,
    MPI_ANY_SOURCE = -1,
    MPI_KEYVAL_INVALID = 0,
    MPI_SUCCESS = 0,
    MPI_THREAD_SINGLE = 0,
    MPI_ERR_BUFFER = 1,
    MPI_MODE_APPEND = 1,
    MPI_ERR_COMM = 5,
    MPI_MODE_DELETE_ON_CLOSE = 4,
    MPI_MODE_EXCL = 8,
    MPI_ERR_REQUEST = 7,
    MPI_ORDER_C = 12,
    MPI_ERR_ARG = 13,
    MPI_DISTRIBUTE_NONE = 16,
    MPI_MODE_RDONLY = 16,
    MPI_DISTRIBUTE_BLOCK = 17,
    MPI_DISTRIBUTE_DFLT_DARG = 19,
    MPI_ERR_ACCESS = 20,
    MPI_MODE_RDWR = 32,
    MPI_ERR_IO = 35,
    MPI_ERR_NO_MEM = 39,
    MPI_ERR_NO_SPACE = 41,
    MPI_ERR_QUOTA = 44,
    MPI_ERR_READ_ONLY = 45,
    MPI_ERR_UNSUPPORTED_OPERATION = 55,
    MPI_MODE_SEQUENTIAL = 64,
    MPI_COMBINER_NAMED = 101,
    MPI_COMBINER_DUP = 102,
    MPI_COMBINER_CONTIGUOUS = 103,
    MPI_COMBINER_VECTOR = 104,
    MPI_COMBINER_HVECTOR = 105,
    MPI_COMBINER_INDEXED = 106,
    MPI_COMBINER_HINDEXED = 107,
    MPI_COMBINER_INDEXED_BLOCK = 108,
    MPI_COMBINER_HINDEXED_BLOCK = 109,
    MPI_COMBINER_STRUCT = 110,
    MPI_COMBINER_SUBARRAY = 111,
    MPI_COMBINER_DARRAY = 112,
    MPI_COMBINER_F90_REAL = 113,
    MPI_COMBINER_F90_COMPLEX = 114,
    MPI_COMBINER_F90_INTEGER = 115,
    MPI_COMBINER_RESIZED = 116,
    MPI_IDENT = 201,
    MPI_CONGRUENT = 202,
    MPI_UNEQUAL = 204,
    MPI_COMM_TYPE_SHARED = 221,
    MPI_MODE_WRONLY = 256,
    MPI_SEEK_CUR = 401,
    MPI_SEEK_END = 402,
    MPI_SEEK_SET = 403,
    MPI_THREAD_MULTIPLE = 4096,
};

#ifdef __cplusplus
extern "C" {
#endif
int PMPI_Abort(MPI_Comm comm, int errorcode);
int PMPI_Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                   MPI_Datatype recvtype, MPI_Comm comm);
int PMPI_Allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                    const int displs[], MPI_Datatype recvtype, MPI_Comm comm);
int PMPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int PMPI_Alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                  MPI_Datatype recvtype, MPI_Comm comm);
int PMPI_Barrier(MPI_Comm comm);
int PMPI_Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int PMPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int* result);
int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function* comm_copy_attr_fn,
                            MPI_Comm_delete_attr_function* comm_delete_attr_fn, int* comm_keyval, void* extra_state);
int PMPI_Comm_free(MPI_Comm* comm);
int PMPI_Comm_free_keyval(int* comm_keyval);
int PMPI_Comm_group(MPI_Comm comm, MPI_Group* group);
int PMPI_Comm_rank(MPI_Comm comm, int* rank);
int PMPI_Comm_set_attr(MPI_Comm comm, int comm_keyval, void* attribute_val);
int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler);
int PMPI_Comm_size(MPI_Comm comm, int* size);
int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm);
int PMPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm);
int PMPI_Error_class(int errorcode, int* errorclass);
int PMPI_Exscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int PMPI_File_call_errhandler(MPI_File fh, int errorcode);
int PMPI_File_get_errhandler(MPI_File fh, MPI_Errhandler* errhandler);
int PMPI_File_set_errhandler(MPI_File fh, MPI_Errhandler errhandler);
int PMPI_File_get_position(MPI_File fh, MPI_Offset* offset);
int PMPI_File_seek(MPI_File fh, MPI_Offset offset, int whence);
int PMPI_Get_elements_x(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count);
int PMPI_Get_count(const MPI_Status* status, MPI_Datatype datatype, int* count);
int PMPI_Get_library_version(char* version, int* resultlen);
int PMPI_Get_version(int* version, int* subversion);
int PMPI_Grequest_complete(MPI_Request request);
int PMPI_Grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                        MPI_Grequest_cancel_function* cancel_fn, void* extra_state, MPI_Request* request);
int PMPI_Group_free(MPI_Group* group);
int PMPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[]);
int PMPI_Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                    MPI_Request* request);
int PMPI_Ibarrier(MPI_Comm comm, MPI_Request* request);
int PMPI_Info_create(MPI_Info* info);
int PMPI_Info_delete(MPI_Info info, const char* key);
int PMPI_Info_dup(MPI_Info info, MPI_Info* newinfo);
int PMPI_Info_free(MPI_Info* info);
int PMPI_Info_get(MPI_Info info, const char* key, int valuelen, char* value, int* flag);
int PMPI_Info_set(MPI_Info info, const char* key, const char* value);
int PMPI_Initialized(int* flag);
int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status);
int PMPI_Irecv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request* request);
int PMPI_Isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request);
int PMPI_Issend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request* request);
int PMPI_Pack(const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize, int* position,
              MPI_Comm comm);
int PMPI_Pack_external(const char datarep[], const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf,
                       MPI_Aint outsize, MPI_Aint* position);
int PMPI_Query_thread(int* provided);
int PMPI_Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status* status);
int PMPI_Status_set_cancelled(MPI_Status* status, int flag);
int PMPI_Test_cancelled(const MPI_Status* status, int* flag);
int PMPI_Status_set_elements_x(MPI_Status* status, MPI_Datatype datatype, MPI_Count count);
int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status);
int PMPI_Testall(int count, MPI_Request array_of_requests[], int* flag, MPI_Status array_of_statuses[]);
int PMPI_Type_create_keyval(MPI_Type_copy_attr_function* type_copy_attr_fn,
                            MPI_Type_delete_attr_function* type_delete_attr_fn, int* type_keyval, void* extra_state);
int PMPI_Type_dup(MPI_Datatype datatype, MPI_Datatype* newtype);
int PMPI_Type_free(MPI_Datatype* datatype);
int PMPI_Type_free_keyval(int* type_keyval);
int PMPI_Type_get_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val, int* flag);
int PMPI_Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
                           int array_of_integers[], MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]);
int PMPI_Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                             MPI_Count max_large_counts, MPI_Count max_datatypes, int array_of_integers[],
                             MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
                             MPI_Datatype array_of_datatypes[]);
int PMPI_Type_get_envelope(MPI_Datatype datatype, int* num_integers, int* num_addresses, int* num_datatypes,
                           int* combiner);
int PMPI_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count* num_integers, MPI_Count* num_addresses,
                             MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner);
int PMPI_Type_get_extent_x(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent);
int PMPI_Type_get_name(MPI_Datatype datatype, char* type_name, int* resultlen);
int PMPI_Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent);
int PMPI_Type_set_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val);
int PMPI_Type_size_x(MPI_Datatype datatype, MPI_Count* size);
int PMPI_Unpack(const void* inbuf, int insize, int* position, void* outbuf, int outcount, MPI_Datatype datatype,
                MPI_Comm comm);
int PMPI_Unpack_external(const char datarep[], const void* inbuf, MPI_Aint insize, MPI_Aint* position, void* outbuf,
                         int outcount, MPI_Datatype datatype);
int PMPI_Wait(MPI_Request* request, MPI_Status* status);
int PMPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]);
#ifdef __cplusplus
}
#endif
