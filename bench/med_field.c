/* Steps of a field, each rank a block of its nodes, by the MED library (libmed 4): med_field FILE STEPS NODES full|none.
   `full`: MED_FULL_INTERLACE, which becomes writes of 8 B; `none`: one piece of 8 B x NODES for each component.
   Rank 0 prints the seconds of each rank's writes (the mean over ranks) and of all steps with opening and closing. */
#include <mpi.h>

#define MESGERR 1
#include <med.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPONENTS = 3, ARGUMENTS = 5 };

static void must(int failed, const char* what) {
    if (failed) {
        fprintf(stderr, "med_field: %s failed\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    must(count != ARGUMENTS, "reading FILE STEPS NODES full|none");
    const int steps = atoi(arguments[2]);
    const int nodes = atoi(arguments[3]);
    const med_switch_mode mode = strcmp(arguments[4], "full") == 0 ? MED_FULL_INTERLACE : MED_NO_INTERLACE;
    double* values = malloc(sizeof(double) * COMPONENTS * (size_t)nodes);
    must(values == NULL, "reserving the values");

    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    const med_idt file = MEDparFileOpen(arguments[1], MED_ACC_CREAT, MPI_COMM_WORLD, MPI_INFO_NULL);
    must(file < 0, "MEDparFileOpen");
    char axes[3 * MED_SNAME_SIZE + 1];
    memset(axes, ' ', sizeof axes);
    axes[sizeof axes - 1] = '\0';
    must(MEDmeshCr(file, "mesh", 3, 3, MED_UNSTRUCTURED_MESH, "", "", MED_SORT_DTIT, MED_CARTESIAN, axes, axes) < 0,
         "MEDmeshCr");
    must(MEDfieldCr(file, "field", MED_FLOAT64, COMPONENTS, axes, axes, "", "mesh") < 0, "MEDfieldCr");
    med_filter filter = MED_FILTER_INIT;
    must(MEDfilterBlockOfEntityCr(file, (med_int)nodes * ranks, 1, COMPONENTS, MED_ALL_CONSTITUENT, mode,
                                  MED_COMPACT_STMODE, MED_NO_PROFILE, (med_size)rank * nodes + 1, nodes, 1, nodes, 0,
                                  &filter) < 0,
         "MEDfilterBlockOfEntityCr");
    double writing = 0;
    for (int step = 0; step < steps; ++step) {
        for (int i = 0; i < COMPONENTS * nodes; ++i) values[i] = rank + step * 1e-3 + i * 1e-6;
        const double from = MPI_Wtime();
        must(MEDfieldValueAdvancedWr(file, "field", step + 1, MED_NO_IT, step, MED_NODE, MED_NONE, MED_NO_LOCALIZATION,
                                     &filter, (const unsigned char*)values) < 0,
             "MEDfieldValueAdvancedWr");
        writing += MPI_Wtime() - from;
    }
    must(MEDfilterClose(&filter) < 0, "MEDfilterClose");
    must(MEDfileClose(file) < 0, "MEDfileClose");
    MPI_Barrier(MPI_COMM_WORLD);
    const double all = MPI_Wtime() - began;
    double sum = 0;
    MPI_Reduce(&writing, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("{\"writing\": %.6f, \"all\": %.6f}\n", sum / ranks, all);
    free(values);
    MPI_Finalize();
    return 0;
}
