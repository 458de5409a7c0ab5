/* An HDF5 program that does unusual things, and says what it sees. PATH KIND CASE [die]
 * KIND: mpio, a file that all ranks open; own, one for each rank, without MPI-IO.
 * CASE: see the table at the end. With `die` the process ends where a case has said "held".
 * Each line of output begins with the rank. After the case: ids that are open, errors that were told, entries of the error stack.
 */
#include "hdf5_objects.h"

/* ------------------------------------------------------------------------------------------------------------ files */

/* HDF5 1.10.8 itself loses what is made by way of a file that is opened twice through MPI-IO. */
static void two_ids(void) {
    const hid_t file = create_file(path), again = own ? open_file(path) : GOOD(H5Freopen(file));
    const hid_t third = GOOD(H5Freopen(file));
    hid_t set = create(again, "a", H5P_DEFAULT);
    GOOD(H5Fclose(file));
    write_share(set, 3, LENGTH, alone_list);
    done_with(set);
    set = create(third, "b", H5P_DEFAULT);
    write_share(set, 3, LENGTH, alone_list);
    GOOD(H5Fclose(again));
    done_with(set);
    held();
    GOOD(H5Fclose(third));
    SHOW_FILE("a", "b");
}

static void two_names(void) {
    char name[1100];
    const char* slash = strrchr(path, '/');
    snprintf(name, sizeof name, "%.*s/./%s", (int)(slash - path), path, slash + 1);
    const hid_t file = create_file(path), again = open_file(name), set = create(file, "a", H5P_DEFAULT);
    done_with(create(file, "b", H5P_DEFAULT));
    GOOD(H5Fclose(own ? file : again));
    write_share(set, 3, LENGTH, alone_list);
    done_with(set);
    held();
    GOOD(H5Fclose(own ? again : file));
    SHOW_FILE("a");
}

static void references(void) {
    const hid_t file = create_file(path);
    GOOD(H5Iinc_ref(file));
    GOOD(H5Fclose(file));
    const hid_t set = create(file, "a", H5P_DEFAULT);
    GOOD(H5Iinc_ref(set));
    GOOD(H5Dclose(set));
    write_share(set, 3, LENGTH, alone_list);
    GOOD(H5Idec_ref(set));
    held();
    GOOD(H5Idec_ref(file));
    SHOW_FILE("a");
}

/* Objects outlive the ids of their file; `last` is closed last. */
static void outlived_by(int last) {
    GOOD(H5Pset_fclose_degree(access_list, H5F_CLOSE_WEAK));
    const hid_t file = create_file(path);
    const hid_t set = create(file, "a", H5P_DEFAULT), group = GOOD(H5Gcreate2(file, "group", 0, 0, 0));
    const hid_t space = space_of(4), type = GOOD(H5Tcopy(H5T_NATIVE_INT));
    GOOD(H5Tcommit2(file, "type", type, 0, 0, 0));
    const hid_t attribute = GOOD(H5Acreate2(set, "attribute", H5T_NATIVE_INT, space, 0, 0));
    H5Sclose(space);
    GOOD(H5Fclose(file));
    write_share(set, 3, LENGTH, alone_list);
    const hid_t more = create(group, "more", H5P_DEFAULT);
    write_share(more, 3, LENGTH, alone_list);
    done_with(more);
    const hid_t ids[] = {set, group, type, attribute};
    for (int i = 0; i < 4; ++i)
        if (i != last)
            GOOD(i == 0 ? H5Dclose(set) : i == 1 ? H5Gclose(group) : i == 2 ? H5Tclose(type) : H5Aclose(attribute));
    say("%d left", (int)H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL));
    held();
    GOOD(last < 2 ? H5Oclose(ids[last]) : H5Idec_ref(ids[last]));
    meet();
    SHOW_FILE("a", "group/more");
}
static void outlived_by_dataset(void) { outlived_by(0); }
static void outlived_by_group(void) { outlived_by(1); }
static void outlived_by_type(void) { outlived_by(2); }
static void outlived_by_attribute(void) { outlived_by(3); }

static void closed_with_objects(void) {
    GOOD(H5Pset_fclose_degree(access_list, H5F_CLOSE_STRONG));
    const hid_t file = create_file(path), set = create(file, "a", H5P_DEFAULT);
    write_share(set, 3, LENGTH, alone_list);
    held();
    GOOD(H5Fclose(file));
    say("valid: %d", H5Iis_valid(set));
    SHOW_FILE("a");
}

static void close_is_refused(void) {
    GOOD(H5Pset_fclose_degree(access_list, H5F_CLOSE_SEMI));
    const hid_t file = create_file(path), set = create(file, "a", H5P_DEFAULT);
    const int code = (int)H5Fclose(file);
    say("close: %d, errors %d", code, H5Eget_num(H5E_DEFAULT) > 0);
    write_share(set, 3, LENGTH, alone_list);
    done_with(set);
    held();
    GOOD(H5Fclose(file));
    SHOW_FILE("a");
}

static void mounted(void) {
    const hid_t file = create_file(path), group = GOOD(H5Gcreate2(file, "point", 0, 0, 0)), child = create_file(other);
    H5Gclose(group);
    GOOD(H5Fmount(file, "point", child, H5P_DEFAULT));
    const hid_t set = create(file, "point/a", H5P_DEFAULT);
    write_share(set, 3, LENGTH, alone_list);
    show(set, "through", together_list);
    done_with(set);
    GOOD(H5Funmount(file, "point"));
    GOOD(H5Fclose(child));
    held();
    GOOD(H5Fclose(file));
    strcpy(path, other);
    SHOW_FILE("a");
}

static void left_open(void) {
    const hid_t file = create_file(path), set = create(file, "a", H5P_DEFAULT);
    write_share(set, 3, LENGTH, alone_list);
    GOOD(H5Dclose(set));
    held();
}

static void closed_at_once(void) {
    const hid_t set = create(create_file(path), "a", H5P_DEFAULT);
    write_share(set, 3, LENGTH, alone_list);
    meet();
    H5close();
    H5open();
    exit((MPI_Finalize(), 0));
}

/* --------------------------------------------------------------------------------------------------------- datasets */

static void nameless(void) {
    const hid_t file = create_file(path), space = space_of(LENGTH), list = list_with_fill(-5, H5D_FILL_TIME_IFSET);
    for (int i = 0; i < 3; ++i) {
        const char name[] = {(char)('a' + i), 0};
        const hid_t set = GOOD(H5Dcreate_anon(file, H5T_NATIVE_INT, space, list, H5P_DEFAULT));
        if (i == 1) GOOD(H5Olink(set, file, name, H5P_DEFAULT, H5P_DEFAULT));
        write_share(set, 3, i == 2 ? LENGTH / 2 : LENGTH, alone_list);
        if (i != 1) GOOD(H5Olink(set, file, name, H5P_DEFAULT, H5P_DEFAULT));
        done_with(set);
    }
    done_with(GOOD(H5Dcreate_anon(file, H5T_NATIVE_INT, space, list, H5P_DEFAULT)));
    H5Sclose(space);
    H5Pclose(list);
    GOOD(H5Fclose(file));
    SHOW_FILE("a", "b", "c");
}

static void old_create(void) {
    const hid_t file = create_file(path), space = space_of(LENGTH), list = list_with_fill(-5, H5D_FILL_TIME_IFSET);
    for (int i = 0; i < 3; ++i) {
        const char name[] = {(char)('a' + i), 0};
        const hid_t set = GOOD(H5Dcreate1(file, name, H5T_NATIVE_INT, space, i == 1 ? list : H5P_DEFAULT));
        write_share(set, 3, LENGTH, alone_list);
        done_with(set);
    }
    H5Sclose(space);
    H5Pclose(list);
    GOOD(H5Fclose(file));
    SHOW_FILE("a", "b", "c");
}

static void copied(void) {
    const hid_t file = create_file(path), list = list_with_fill(-5, H5D_FILL_TIME_IFSET);
    for (int i = 0; i < 3; ++i) {
        const char name[] = {(char)('a' + i), 0}, copy[] = {(char)('x' + i), 0};
        const hid_t set = create(file, name, list);
        write_share(set, 3, i == 2 ? LENGTH / 2 : LENGTH, alone_list);
        done_with(set);
        meet();
        GOOD(H5Ocopy(file, name, file, copy, H5P_DEFAULT, H5P_DEFAULT));
    }
    H5Pclose(list);
    GOOD(H5Fclose(file));
    SHOW_FILE("a", "b", "c", "x", "y", "z");
}

static void moved(void) {
    const hid_t file = create_file(path), list = list_with_fill(-5, H5D_FILL_TIME_IFSET);
    hid_t set = create(file, "a", list);
    write_share(set, 3, LENGTH / 2, alone_list);
    done_with(set);
    set = create(file, "b", list);
    write_share(set, 3, LENGTH / 2, alone_list);
    GOOD(H5Lmove(file, "a", file, "c", H5P_DEFAULT, H5P_DEFAULT));
    GOOD(H5Lmove(file, "b", file, "a", H5P_DEFAULT, H5P_DEFAULT));
    done_with(set);
    meet(); /* Else a rank's part of the old "a" may be written after rank 0's fill values of the new one, in its place. */
    GOOD(H5Ldelete(file, "a", H5P_DEFAULT));
    done_with(create(file, "a", list));
    H5Pclose(list);
    GOOD(H5Fclose(file));
    SHOW_FILE("a", "c");
}

static void extended(void) {
    const hsize_t now[] = {LENGTH}, most[] = {H5S_UNLIMITED}, larger[] = {2 * LENGTH}, smaller[] = {LENGTH / 2};
    const hsize_t chunk[] = {512};
    const hid_t file = create_file(path), list = list_with_fill(-5, H5D_FILL_TIME_IFSET);
    const hid_t space = GOOD(H5Screate_simple(1, now, most));
    GOOD(H5Pset_chunk(list, 1, chunk));
    for (int i = 0; i < 3; ++i) {
        const char name[] = {(char)('a' + i), 0};
        const hid_t set = GOOD(H5Dcreate2(file, name, H5T_NATIVE_INT, space, 0, list, 0));
        write_share(set, 3, LENGTH, together_list);
        GOOD(i == 0 ? H5Dextend(set, larger) : H5Dset_extent(set, i == 1 ? larger : smaller));
        if (i == 2) GOOD(H5Dset_extent(set, now));
        show(set, name, together_list);
        done_with(set);
    }
    H5Sclose(space);
    H5Pclose(list);
    GOOD(H5Fclose(file));
    SHOW_FILE("a", "b", "c");
}

/* What cannot grow stays so. */
static void fixed_then_extended(void) {
    const hid_t file = create_file(path);
    for (int i = 0; i < 3; ++i) {
        const char name[] = {(char)('a' + i), 0};
        const hid_t set = create(file, name, H5P_DEFAULT);
        const hsize_t larger[] = {2 * LENGTH};
        write_share(set, 3, LENGTH, together_list);
        const int code = (int)H5Dset_extent(set, larger);
        say("extend: %d, errors %d", code, H5Eget_num(H5E_DEFAULT) > 0);
        show(set, name, together_list);
        done_with(set);
    }
    GOOD(H5Fclose(file));
    SHOW_FILE("a", "b", "c");
}

static void of_odd_spaces(void) {
    const hid_t file = create_file(path);
    const hsize_t none[] = {0, 5}, one[] = {1, 1, 1};
    const hid_t spaces[] = {GOOD(H5Screate(H5S_SCALAR)), GOOD(H5Screate(H5S_NULL)),
                            GOOD(H5Screate_simple(2, none, NULL)), GOOD(H5Screate_simple(3, one, NULL))};
    for (int i = 0; i < 12; ++i) {
        char name[] = {(char)('a' + i), 0};
        int value = 10, seen = -77;
        const hid_t list = i % 3 == 2 ? list_with_fill(-5, H5D_FILL_TIME_ALLOC) : H5P_DEFAULT;
        const hid_t set = GOOD(H5Dcreate2(file, name, H5T_NATIVE_INT, spaces[i / 3], 0, list, 0));
        if (list != H5P_DEFAULT) H5Pclose(list);
        if (i % 3 == 0) GOOD(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, alone_list, &value));
        GOOD(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, alone_list, &seen));
        say("%s: %d", name, seen);
        done_with(set);
    }
    for (int i = 0; i < 4; ++i) H5Sclose(spaces[i]);
    GOOD(H5Fclose(file));
}

static void of_odd_types(void) {
    const hid_t file = create_file(path), space = space_of(3), list = H5Pcreate(H5P_DATASET_CREATE);
    const hid_t words = H5Tcopy(H5T_C_S1), lists = H5Tvlen_create(H5T_NATIVE_INT);
    H5Tset_size(words, H5T_VARIABLE);
    if (own) {
        const char* texts[] = {"one", "two", "three"};
        char* seen[3];
        hid_t set = GOOD(H5Dcreate2(file, "words", words, space, 0, 0, 0));
        GOOD(H5Dwrite(set, words, H5S_ALL, H5S_ALL, alone_list, texts));
        GOOD(H5Dread(set, words, H5S_ALL, H5S_ALL, alone_list, seen));
        say("words: %s %s %s", seen[0], seen[1], seen[2]);
        H5Dvlen_reclaim(words, space, H5P_DEFAULT, seen);
        done_with(set);
        hobj_ref_t references_to[3];
        for (int i = 0; i < 3; ++i) GOOD(H5Rcreate(&references_to[i], file, "words", H5R_OBJECT, -1));
        set = GOOD(H5Dcreate2(file, "references", H5T_STD_REF_OBJ, space, 0, 0, 0));
        GOOD(H5Dwrite(set, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, alone_list, references_to));
        memset(references_to, 0, sizeof references_to);
        GOOD(H5Dread(set, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, alone_list, references_to));
        const hid_t named = GOOD(H5Rdereference2(set, H5P_DEFAULT, H5R_OBJECT, &references_to[2]));
        char name[32];
        H5Iget_name(named, name, sizeof name);
        say("refers to %s", name);
        done_with(named);
        done_with(set);
    }
    done_with(GOOD(H5Dcreate2(file, "lists", lists, space, 0, list, 0)));
    done_with(GOOD(H5Dcreate2(file, "places", H5T_STD_REF_DSETREG, space, 0, list, 0)));
    H5Tclose(words);
    H5Tclose(lists);
    H5Sclose(space);
    H5Pclose(list);
    GOOD(H5Fclose(file));
}

static void of_odd_layouts(void) {
    const hid_t file = create_file(path), space = space_of(LENGTH);
    const hid_t compact = list_with_fill(-5, H5D_FILL_TIME_IFSET), external = H5Pcreate(H5P_DATASET_CREATE);
    char raw[1100];
    GOOD(H5Pset_layout(compact, H5D_COMPACT));
    snprintf(raw, sizeof raw, "%s.raw", path);
    GOOD(H5Pset_external(external, raw, 0, H5F_UNLIMITED));
    hid_t set = create(file, "compact", compact);
    write_part(set, 0, LENGTH / 2, together_list);
    show(set, "compact", together_list);
    done_with(set);
    if (own) {
        set = create(file, "external", external);
        write_part(set, 0, LENGTH, alone_list);
        show(set, "external", alone_list);
        done_with(set);
        const hid_t list = list_with_fill(-5, H5D_FILL_TIME_IFSET), inner = list_with_fill(-6, H5D_FILL_TIME_IFSET);
        const hsize_t half = LENGTH / 2, from = 0;
        const hid_t source = space_of(half);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &from, NULL, &half, NULL);
        GOOD(H5Pset_virtual(list, space, ".", "inner", source));
        H5Sselect_all(space);
        const hid_t part = GOOD(H5Dcreate2(file, "inner", H5T_NATIVE_INT, source, 0, inner, 0));
        set = GOOD(H5Dcreate2(file, "virtual", H5T_NATIVE_INT, space, 0, list, 0));
        write_part(set, 0, LENGTH / 4, alone_list);
        show(part, "inner", alone_list);
        show(set, "virtual", alone_list);
        done_with(part);
        done_with(set);
        H5Sclose(source);
        H5Pclose(list);
        H5Pclose(inner);
    }
    H5Pclose(compact);
    H5Pclose(external);
    H5Sclose(space);
    GOOD(H5Fclose(file));
}

/* Datasets of which parts are never written. Without a fill value what is there is not defined. */
static void partly_written(void) {
    static const H5D_fill_time_t times[] = {H5D_FILL_TIME_IFSET, H5D_FILL_TIME_ALLOC};
    const hid_t file = create_file(path);
    const hsize_t chunk = 512;
    char name[3] = "";
    for (int i = 0; i < 12; ++i) {
        const hid_t list = list_with_fill(-5 - i, times[i % 2]);
        if (i >= 9) H5Pset_chunk(list, 1, &chunk);
        snprintf(name, sizeof name, "%c", 'a' + i);
        hid_t set = create(file, name, list);
        H5Pclose(list);
        if (i % 3 == 1) {  // by another id
            done_with(set);
            set = GOOD(H5Dopen2(file, name, H5P_DEFAULT));
        }
        if (i % 3 != 2) write_share(set, 3, i % 2 == 0 ? LENGTH : LENGTH / 2, together_list);
        if (i > 5 && i % 2 == 1) show(set, name, together_list);
        if (i == 4) GOOD(H5Fflush(file, H5F_SCOPE_GLOBAL));
        if (i == 7) {
            write_share(set, 3, LENGTH, alone_list);
            write_share(set, 3, LENGTH / 4, alone_list);
        }
        done_with(set);
    }
    GOOD(H5Fclose(file));
    SHOW_FILE("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l");
}

/* Every other element of two dimensions, and single ones. */
static void written_in_pieces(void) {
    const hsize_t shape[] = {LENGTH / 64, 64}, chunk[] = {16, 16};
    const hid_t file = create_file(path), space = GOOD(H5Screate_simple(2, shape, NULL)), memory = space_of(LENGTH);
    int* values = calloc(LENGTH, sizeof *values);
    for (int i = 0; i < 4; ++i) {
        const char name[] = {(char)('a' + i), 0};
        const hid_t list = list_with_fill(-5, H5D_FILL_TIME_IFSET);
        if (i > 1) H5Pset_chunk(list, 2, chunk);
        const hid_t set = GOOD(H5Dcreate2(file, name, H5T_NATIVE_INT, space, 0, list, 0));
        const hsize_t me = own ? 0 : (hsize_t)rank, all = own ? 3 : (hsize_t)ranks;
        const hsize_t from[] = {0, me}, stride[] = {2, all}, count[] = {shape[0] / 2, (64 - me + all - 1) / all};
        const hsize_t points[] = {1, me, 3, me + 7, 5, 60}, many = count[0] * count[1], three = 3, zero = 0;
        H5Sselect_hyperslab(space, H5S_SELECT_SET, from, stride, count, NULL);
        H5Sselect_hyperslab(memory, H5S_SELECT_SET, &zero, NULL, &many, NULL);
        for (hsize_t k = 0; k < many; ++k) values[k] = 1 + (int)k;
        GOOD(H5Dwrite(set, H5T_NATIVE_INT, memory, space, alone_list, values));
        if (i % 2 == 1) {
            H5Sselect_elements(space, H5S_SELECT_SET, 3, points);
            H5Sselect_hyperslab(memory, H5S_SELECT_SET, &zero, NULL, &three, NULL);
            for (int k = 0; k < 3; ++k) values[k] = -1;
            GOOD(H5Dwrite(set, H5T_NATIVE_INT, memory, space, alone_list, values));
        }
        H5Pclose(list);
        done_with(set);
    }
    GOOD(H5Fclose(file));
    H5Sclose(space);
    H5Sclose(memory);
    meet();
    const hid_t again = open_file(path);
    for (int i = 0; i < 4; ++i) {
        const char name[] = {(char)('a' + i), 0};
        const hid_t set = GOOD(H5Dopen2(again, name, H5P_DEFAULT));
        long sum = 0;
        GOOD(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, alone_list, values));
        for (int k = 0; k < LENGTH; ++k) sum = (sum * 31 + values[k]) % 1000003;
        say("%s: %ld %d %d %d", name, sum, values[64], values[1], values[LENGTH - 1]);
        done_with(set);
    }
    GOOD(H5Fclose(again));
    free(values);
}

/* Bytes get into a dataset past H5Dwrite. */
static void written_as_chunks(void) {
    const hsize_t chunk = 512;
    const hid_t file = create_file(path), list = list_with_fill(-5, H5D_FILL_TIME_IFSET);
    int values[512];
    H5Pset_chunk(list, 1, &chunk);
    const hid_t set = create(file, "a", list);
    const hsize_t place = own ? 1024 : (hsize_t)rank * 1024;
    for (int k = 0; k < 512; ++k) values[k] = (int)(10 + place) + k;
    if (own) GOOD(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &place, sizeof values, values));
    H5Pclose(list);
    done_with(set);
    GOOD(H5Fclose(file));
    SHOW_FILE("a");
}

/* Together, chunked, from vectors: one rank has nothing to move ("a"), and in "b" another one's memory is not in one piece. */
static void shapes_apart(void) {
    const hsize_t rows = 8, columns = 16, shape[] = {3 * rows, columns}, chunk[] = {rows, columns}, zero = 0, two = 2;
    const hsize_t mine = rows * columns, twice = 2 * mine, me = own ? 1 : (hsize_t)rank % 3;
    const hsize_t from[] = {me * rows, 0}, count[] = {rows, columns};
    const hid_t list = GOOD(H5Pcreate(H5P_DATASET_CREATE)), space = GOOD(H5Screate_simple(2, shape, NULL));
    H5Pset_chunk(list, 2, chunk);
    for (int reads = 0; reads < 2; ++reads) {
        const hid_t file = reads ? open_file(path) : create_file(path);
        for (int i = 0; i < 2; ++i) {
            const int apart = i == 1 && me == 1, nothing = i == 0 && me == 0;
            const hid_t memory = space_of(apart ? twice : mine);
            int* values = calloc(twice, sizeof *values);
            H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, count, NULL);
            H5Sselect_hyperslab(memory, H5S_SELECT_SET, &zero, apart ? &two : NULL, &mine, NULL);
            if (nothing) H5Sselect_none(space), H5Sselect_none(memory);
            for (hsize_t k = 0; k < twice && !reads; ++k) values[k] = 1000 * (int)me + (int)k;
            const char* name = i == 0 ? "a" : "b";
            const hid_t set =
                reads ? GOOD(H5Dopen2(file, name, 0)) : GOOD(H5Dcreate2(file, name, H5T_NATIVE_INT, space, 0, list, 0));
            if (reads)
                GOOD(H5Dread(set, H5T_NATIVE_INT, memory, space, together_list, values));
            else
                GOOD(H5Dwrite(set, H5T_NATIVE_INT, memory, space, together_list, values));
            long sum = 0;
            for (hsize_t k = 0; k < twice; ++k) sum += (long)(k + 1) * values[k];
            if (reads) say("%s: %ld", name, sum);
            free(values);
            H5Sclose(memory);
            done_with(set);
        }
        GOOD(H5Fclose(file));
        meet();
    }
    H5Sclose(space);
    H5Pclose(list);
}

/* Fill values that a write, or a read by way of another dataset, counts on: members that nobody has written stand beside
 * one that somebody has, a write fails, and a virtual dataset lies in another file. */
static void counted_on(void) {
    struct {
        int a, b;
    } filling = {-1, -2}, seen[LENGTH];
    const hid_t file = create_file(path), space = space_of(LENGTH), list = list_with_fill(-7, H5D_FILL_TIME_IFSET);
    const hid_t pair = GOOD(H5Tcreate(H5T_COMPOUND, sizeof filling)),
                member = GOOD(H5Tcreate(H5T_COMPOUND, sizeof(int)));
    H5Tinsert(pair, "a", 0, H5T_NATIVE_INT);
    H5Tinsert(pair, "b", sizeof(int), H5T_NATIVE_INT);
    H5Tinsert(member, "b", 0, H5T_NATIVE_INT);
    const hid_t pairs_list = GOOD(H5Pcreate(H5P_DATASET_CREATE)), words = H5Tcopy(H5T_C_S1);
    H5Pset_fill_value(pairs_list, pair, &filling);
    int values[LENGTH];
    for (int i = 0; i < LENGTH; ++i) values[i] = i;
    hid_t set = GOOD(H5Dcreate2(file, "pairs", pair, space, 0, pairs_list, 0));
    // Not all elements: HDF5 itself fills nothing then, whichever members are written.
    const hsize_t from = 0, half = LENGTH / 2;
    const hid_t some = GOOD(H5Scopy(space));
    H5Sselect_hyperslab(some, H5S_SELECT_SET, &from, NULL, &half, NULL);
    GOOD(H5Dwrite(set, member, some, some, together_list, values));
    H5Sclose(some);
    meet();
    GOOD(H5Dread(set, pair, H5S_ALL, H5S_ALL, together_list, seen));
    say("pair: %d %d", seen[5].a, seen[5].b);
    done_with(set);
    set = GOOD(H5Dcreate2(file, "in-vain", H5T_NATIVE_INT, space, 0, list, 0));
    say("write of words: %d", H5Dwrite(set, words, H5S_ALL, H5S_ALL, together_list, values) < 0);
    done_with(set);
    if (own) {
        set = GOOD(H5Dcreate2(file, "far", H5T_NATIVE_INT, space, 0, list, 0));
        const hid_t near = create_file(other), near_list = GOOD(H5Pcreate(H5P_DATASET_CREATE));
        H5Pset_virtual(near_list, space, path, "far", space);
        const hid_t near_set = GOOD(H5Dcreate2(near, "near", H5T_NATIVE_INT, space, 0, near_list, 0));
        GOOD(H5Dread(near_set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, alone_list, values));
        say("near: %d %d", values[0], values[LENGTH - 1]);
        done_with(near_set);
        H5Pclose(near_list);
        GOOD(H5Fclose(near));
        done_with(set);
    }
    H5Pclose(pairs_list);
    H5Pclose(list);
    H5Sclose(space);
    H5Tclose(pair);
    H5Tclose(member);
    H5Tclose(words);
    GOOD(H5Fclose(file));
    SHOW_FILE("in-vain");
}

static void failing(void) {
    const hid_t file = create_file(path);
    const hsize_t length = 4;
    const hid_t space = GOOD(H5Screate_simple(1, &length, NULL));
    int values[4] = {0};
    hid_t list = GOOD(H5Pcreate(H5P_DATASET_CREATE));
    say("dataset of no type: %d", H5Dcreate2(file, "a", -1, space, 0, list, 0) < 0);
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    say("dataset nowhere: %d", H5Dcreate2(file, "no/a", H5T_NATIVE_INT, space, 0, list, 0) < 0);
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    const hid_t set = GOOD(H5Dcreate2(file, "a", H5T_NATIVE_INT, space, 0, list, 0));
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    say("write of no type: %d", H5Dwrite(set, -1, H5S_ALL, H5S_ALL, together_list, values) < 0);
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    say("write of no list: %d", H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, space, values) < 0);
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    say("write to no dataset: %d", H5Dwrite(file, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, together_list, values) < 0);
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    say("close of no dataset: %d %d", (int)H5Dclose(file), (int)H5Dclose(12345));
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    say("close of no file: %d %d", (int)H5Fclose(set), (int)H5Fclose(-1));
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    say("decrement of nothing: %d", (int)H5Idec_ref(12345));
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    say("open of nothing: %d", H5Fopen("/no/such/file.h5", H5F_ACC_RDWR, access_list) < 0);
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT) > 0);
    GOOD(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, together_list, values));
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    GOOD(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, together_list, values));
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    done_with(set);
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
    H5Sclose(space);
    H5Pclose(list);
    GOOD(H5Fclose(file));
    say("stack %d", (int)H5Eget_num(H5E_DEFAULT));
}

static const struct {
    const char* name;
    void (*run)(void);
} cases[] = {
    {"two-ids", two_ids},
    {"two-names", two_names},
    {"references", references},
    {"outlived-by-dataset", outlived_by_dataset},
    {"outlived-by-group", outlived_by_group},
    {"outlived-by-type", outlived_by_type},
    {"outlived-by-attribute", outlived_by_attribute},
    {"closed-with-objects", closed_with_objects},
    {"close-is-refused", close_is_refused},
    {"mounted", mounted},
    {"left-open", left_open},
    {"closed-at-once", closed_at_once},
    {"nameless", nameless},
    {"old-create", old_create},
    {"copied", copied},
    {"moved", moved},
    {"extended", extended},
    {"fixed-then-extended", fixed_then_extended},
    {"of-odd-spaces", of_odd_spaces},
    {"of-odd-types", of_odd_types},
    {"of-odd-layouts", of_odd_layouts},
    {"partly-written", partly_written},
    {"written-in-pieces", written_in_pieces},
    {"written-as-chunks", written_as_chunks},
    {"shapes-apart", shapes_apart},
    {"counted-on", counted_on},
    {"failing", failing},
};

/* Ids of a type that are valid, up to the newest, `fresh`. */
static int valid_ids(hid_t fresh) {
    const hid_t first = fresh & ~(hid_t)0xffffffffffffff;
    int count = 0;
    for (hid_t id = first; id <= fresh; ++id) count += H5Iis_valid(id) > 0;
    return count;
}

/* All that the program could have to close. */
static void say_ids(void) {
    const hid_t space = H5Screate(H5S_SCALAR), list = H5Pcreate(H5P_DATASET_CREATE), type = H5Tcopy(H5T_NATIVE_INT);
    const hid_t stack = H5Eget_current_stack();
    say("ids: objects %d, spaces %d, lists %d, types %d, stacks %d",
        (int)H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), valid_ids(space), valid_ids(list), valid_ids(type),
        valid_ids(stack));
    H5Eclose_stack(stack);
    H5Tclose(type);
    H5Pclose(list);
    H5Sclose(space);
}

int main(int argc, char** argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    own = strcmp(argv[2], "own") == 0;
    dies = argc > 4;
    snprintf(path, sizeof path, own ? "%s.%d" : "%s", argv[1], rank);
    snprintf(other, sizeof other, "%s.other", path);
    H5open();
    access_list = H5Pcreate(H5P_FILE_ACCESS);
    alone_list = H5Pcreate(H5P_DATASET_XFER);
    together_list = H5Pcreate(H5P_DATASET_XFER);
#ifdef H5_HAVE_PARALLEL
    if (!own) {
        H5Pset_fapl_mpio(access_list, MPI_COMM_WORLD, MPI_INFO_NULL);
        H5Pset_dxpl_mpio(together_list, H5FD_MPIO_COLLECTIVE);
    }
#endif
    H5Eset_auto2(H5E_DEFAULT, on_error, &told);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        if (strcmp(cases[i].name, argv[3]) == 0) cases[i].run();
    say("told %d", told);
    H5Pclose(access_list);
    H5Pclose(alone_list);
    H5Pclose(together_list);
    say_ids();
    MPI_Finalize();
    return 0;
}
