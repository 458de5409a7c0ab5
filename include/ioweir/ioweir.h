/* ioweir.h: checkpoints of partitioned solvers, from C. C++ and Fortran programs can use it too.
 *
 * A solver whose mesh is divided into parts writes, every so many steps, a set: for each field and each part one block, some integer
 * parameters and an array. The number of files is free; a set appears whole or not at all. Source: Liu, Fu, Carothers et al., "Massively Parallel I/O for Partitioned Solver
 * Systems", section 2 (syncIO); files are PHASTA's syncIO files, version 1 (docs/reference/partitioned-files.md).
 *
 * Every function returns IOWEIR_SUCCESS or a code below; none ends the process (but for what the communicator's own error handler does when communication fails). ioweir_error_text()
 * says what happened, which value was at fault and what to do. Functions marked collective are called by all ranks of the set's communicator, in the same order.
 * A set is used by one thread at a time; MPI must be initialised with MPI_THREAD_SINGLE or more; for delegates that are threads, with MPI_THREAD_MULTIPLE. */
#ifndef IOWEIR_H
#define IOWEIR_H

#include <mpi.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ioweir_set ioweir_set;

enum {
    IOWEIR_SUCCESS = 0,
    IOWEIR_ERR_ARGUMENT = 1,  /* a value that cannot be, or a call at the wrong time */
    IOWEIR_ERR_IO = 2,        /* the storage */
    IOWEIR_ERR_NO_SPACE = 3,  /* no room, or a quota */
    IOWEIR_ERR_NOT_FOUND = 4, /* no such set, field or part */
    IOWEIR_ERR_DAMAGED = 5,   /* a set that is not complete, or not as it was written */
    IOWEIR_ERR_EXISTS = 6,    /* a set of that step is there already */
    IOWEIR_ERR_MEMORY = 7,
    IOWEIR_ERR_MPI = 8
};

/* What an item is. */
enum { IOWEIR_FLOAT64 = 1, IOWEIR_INT32 = 2 };

/* `part` of a rank that has none left in a collective call. */
enum { IOWEIR_NO_PART = -1 };

/* Collective over `comm`, which is duplicated. Begins set `base`-dat.`step`.
 * base, step, files, n_fields, fields: the same on all ranks (else IOWEIR_ERR_ARGUMENT; names of the same folder may differ). base: a path; its directory must be there.
 * parts: how many this rank has, 0 or more; parts are numbered through from 1, those of rank 0 first.
 * files: from 1 to the number of ranks; 0: one for each 64 ranks. Ranks are dealt over files as level as can be. PHASTA's own library reads the set if every rank has as
 *   many parts and the number of ranks is a multiple of that of files.
 * fields: names of all fields that will be written, at most 60, of 1 to 96 printing characters without : @ < >.
 * info: MPI_INFO_NULL, or keys of MPI_File_open and these, which, but for ioweir_buffer, are the same on all ranks (else IOWEIR_ERR_ARGUMENT):
 *   ioweir_layout     unaligned: each field's blocks lie together, in the order of ranks (as PHASTA's library writes them); aligned: each rank collects its blocks and writes
 *                     them with one large call at a multiple of ioweir_block, padded to its end; auto (default): aligned where a rank has at least 20 blocks of
 *                     data, of which a twentieth at most is padding then, as far as the first field tells
 *   ioweir_block      bytes (4194304)
 *   ioweir_buffer     aligned: bytes a rank collects at most, before all write (134217728); a block larger than that is written by itself
 *   ioweir_write      collective: MPI_File_write_at_all; split: its begin and end; independent: MPI_File_write_at; direct: pwritev(2) by each rank, without MPI-IO, an error where
 *                     the file system is none on which that is safe (docs/reference/partitioned-files.md). auto (default): collective where blocks are smaller than 64 KiB on
 *                     an average of the first field and the layout is not aligned; else direct, or independent where direct is not safe, where info has keys of
 *                     MPI_File_open, and under a plan of `ioweir run`
 *   ioweir_directories  true (default): a directory for each file, in one that is renamed as a whole; false: files beside each other, named as PHASTA's library looks for them
 *   ioweir_replace    false (default): a set of that step that is there is an error; true: it is replaced when this one is complete
 *   ioweir_durable    true (default): ioweir_set_close() waits until all of it would survive a crash of the machine
 * On an error *set is NULL on all ranks, and all ranks have the error. */
int ioweir_set_create(MPI_Comm comm, const char* base, int64_t step, int64_t parts, int64_t files, int n_fields,
                      const char* const* fields, MPI_Info info, ioweir_set** set);

/* Collective over the ranks of a file (of all, for who does not want to know): writes the block of one field and one part of each rank.
 * field: the same on all ranks. part: of this rank, from 0; in each call another one or IOWEIR_NO_PART, for which only `field` matters.
 * type: IOWEIR_FLOAT64 or IOWEIR_INT32. items: number of items at `data`, 0 or more. parameters: n_parameters integers that are kept with it.
 * The data may be changed when it returns. A rank's own error is returned to it at once, and to the others by ioweir_set_close(). */
int ioweir_set_write(ioweir_set* set, const char* field, int64_t part, int type, int64_t items, int n_parameters,
                     const int64_t* parameters, const void* data);

/* The same as two calls, as in the paper's figure 1: the header is only kept (local), the block is written (collective). */
int ioweir_set_write_header(ioweir_set* set, const char* field, int64_t part, int type, int64_t items, int n_parameters,
                            const int64_t* parameters);
int ioweir_set_write_block(ioweir_set* set, const char* field, int64_t part, const void* data);

/* Figures of a set that is being written, of this rank, so far; of the last one that this thread has closed where `set` is NULL. */
typedef struct ioweir_figures {
    int64_t useful_bytes; /* headers and items */
    int64_t padded_bytes; /* written besides, to fill blocks */
    int64_t write_ns;     /* in calls that write, the ranks' agreements included */
    int64_t calls;        /* that write: MPI_File_write* or pwritev */
} ioweir_figures;
int ioweir_set_figures(const ioweir_set* set, ioweir_figures* figures);

/* Collective. Completes a set that was written, or ends reading. *set is NULL afterwards in any case. A rank that had an error in any call: all ranks get an error, the set does
 * not appear, and one that is there under its name stays. So it is where a field was not written for every part. */
int ioweir_set_close(ioweir_set** set);

/* Collective. Ends writing without a set. */
int ioweir_set_abandon(ioweir_set** set);

/* Dedicated writers (rbIO: Liu et al., section 2.2). Some ranks, the delegates, do nothing but write what the others, the workers, hand over; these go on computing at once. */
typedef struct ioweir_service ioweir_service;

/* Collective over `comm`, which is duplicated. delegates: the same on all ranks, from 1 to half of them; 0: as many as hold a set in their memory (ioweir_set_bytes),
 * or else one for each 64 ranks, and the same number on each node. They are spread over nodes, each near its workers.
 * On workers *workers is the communicator to compute with (freed by ioweir_service_end); on delegates it is MPI_COMM_NULL, and these call ioweir_service_run() next.
 * info: MPI_INFO_NULL, or
 *   ioweir_delegates         ranks (default): given up for it, as above; threads: no rank is given up. All are workers, and some of them have a thread that is a delegate, so
 *                            there may be as many as ranks. MPI must give MPI_THREAD_MULTIPLE; threads share processors with the program
 *   ioweir_delegate_processors  of such threads: any (default) that the job may use, since launchers bind a rank to few, on which its thread would stand in its way; own: those
 *                            of its rank
 *   ioweir_delegate_memory   bytes that a delegate holds at most (134217728); workers wait where it has no more
 *   ioweir_set_bytes         of all workers in one set, as far as is known: for how many delegates there are where that is 0
 *   ioweir_worker_memory     bytes a worker may have on their way (67108864); as much as it writes in a step, and it never waits for a delegate that keeps up; with a
 *                            delegate in its own process it waits for each block that is larger */
int ioweir_split(MPI_Comm comm, int64_t delegates, MPI_Info info, MPI_Comm* workers, ioweir_service** service);

/* Delegates: returns when all workers have called ioweir_service_end(). */
int ioweir_service_run(ioweir_service* service);

/* Collective over the workers: as ioweir_set_create(), but ioweir_set_write() and ioweir_set_close() of this set are local and only hand over. files: from 1 to the number of delegates; 0: one each.
 * With a file each a delegate writes alone (mode 0 of the paper); with fewer they share files: ioweir_write = collective (mode 1), or independent at explicit offsets (mode 2, default).
 * The set appears when delegates are done. What fails with them is told by a later call of any of the worker's sets, or by wait or end; a set that is there already, too. */
int ioweir_set_create_by(ioweir_service* service, const char* base, int64_t step, int64_t parts, int64_t files,
                         int n_fields, const char* const* fields, MPI_Info info, ioweir_set** set);

/* Workers, local: until all sets that this worker has closed are on storage, or have failed: what failed first since it was last told. */
int ioweir_service_wait(ioweir_service* service);

/* Collective over all ranks of `comm`, after the last set. On workers as wait. *service is NULL afterwards, and the workers' communicator is gone. Where a set of
 * it is open, IOWEIR_ERR_ARGUMENT, and nothing is done. */
int ioweir_service_end(ioweir_service** service);

/* Collective over `comm`, any number of ranks, which is duplicated. Opens a complete set for reading. step: -1: the last complete one. info: MPI_INFO_NULL, or keys of MPI_File_open,
 * for collective reads.
 * Parts are dealt level over the ranks (ioweir_set_my_parts), but any rank may read any part. */
int ioweir_set_open(MPI_Comm comm, const char* base, int64_t step, MPI_Info info, ioweir_set** set);

/* Local. Of the whole set. Any pointer may be NULL. */
int ioweir_set_inquire(const ioweir_set* set, int64_t* step, int64_t* files, int64_t* parts, int* n_fields);
/* Local. Name of field `index`, from 0; valid until the set is closed. */
int ioweir_set_field(const ioweir_set* set, int index, const char** name);
/* Local. This rank's share: parts first, first + 1, ..., first + count - 1, numbered from 1. */
int ioweir_set_my_parts(const ioweir_set* set, int64_t* first, int64_t* count);
/* Local. What the block of a part (from 1) has. n_parameters: in: room at `parameters`; out: how many there are, of which the first ones are given. bytes: of its items. */
int ioweir_set_query(ioweir_set* set, const char* field, int64_t part, int64_t* bytes, int* n_parameters,
                     int64_t* parameters);
/* Local. Reads the items of one block; `bytes`: as queried. type: turns items of a file of the other byte order. */
int ioweir_set_read(ioweir_set* set, const char* field, int64_t part, int type, int64_t bytes, void* data);

/* Collective over `comm`: the same for each rank's block of one part of its own share (ioweir_set_my_parts), or IOWEIR_NO_PART, for which only that matters. The ranks whose parts
 * lie in a file read it together (MPI_File_read_at_all). The first such call opens the files. A rank's own error is returned to it alone. */
int ioweir_set_read_all(ioweir_set* set, const char* field, int64_t part, int type, int64_t bytes, void* data);

/* Of the last call of this thread that failed; never NULL. Valid until the next one. */
const char* ioweir_error_text(void);

#ifdef __cplusplus
}
#endif

#endif
