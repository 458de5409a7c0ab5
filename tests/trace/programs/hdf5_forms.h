/* Included ahead of a program by its compiler's -include: its calls of HDF5 become calls of the forms that 1.14 has beside them.
 * FORM_ASYNC: the asynchronous functions, without an event set. FORM_EVENTS: with one. FORM_MULTI: those that move several
 * datasets, with one. FORM_MULTI_EVENTS: the asynchronous ones of those.
 */
#ifndef IOWEIR_TESTS_HDF5_FORMS_H
#define IOWEIR_TESTS_HDF5_FORMS_H

#include <hdf5.h>

/* The set is gone after H5close(). */
static inline hid_t form_events(void) {
#if defined(FORM_EVENTS) || defined(FORM_MULTI_EVENTS)
    static hid_t set = H5I_INVALID_HID;
    if (set < 0 || H5Iget_type(set) != H5I_EVENTSET) set = H5EScreate();
    return set;
#else
    return H5ES_NONE;
#endif
}

#if defined(FORM_MULTI) || defined(FORM_MULTI_EVENTS)

static inline herr_t form_write(hid_t set, hid_t type, hid_t memory, hid_t space, hid_t list, const void* values) {
#ifdef FORM_MULTI
    return H5Dwrite_multi(1, &set, &type, &memory, &space, list, &values);
#else
    return H5Dwrite_multi_async(1, &set, &type, &memory, &space, list, &values, form_events());
#endif
}

static inline herr_t form_read(hid_t set, hid_t type, hid_t memory, hid_t space, hid_t list, void* values) {
#ifdef FORM_MULTI
    return H5Dread_multi(1, &set, &type, &memory, &space, list, &values);
#else
    return H5Dread_multi_async(1, &set, &type, &memory, &space, list, &values, form_events());
#endif
}

#define H5Dwrite(...) form_write(__VA_ARGS__)
#define H5Dread(...) form_read(__VA_ARGS__)

#else

#define H5Fcreate(...) H5Fcreate_async(__VA_ARGS__, form_events())
#define H5Fopen(...) H5Fopen_async(__VA_ARGS__, form_events())
#define H5Freopen(...) H5Freopen_async(__VA_ARGS__, form_events())
#define H5Fflush(...) H5Fflush_async(__VA_ARGS__, form_events())
#define H5Fclose(...) H5Fclose_async(__VA_ARGS__, form_events())
#define H5Gcreate2(...) H5Gcreate_async(__VA_ARGS__, form_events())
#define H5Gopen2(...) H5Gopen_async(__VA_ARGS__, form_events())
#define H5Gclose(...) H5Gclose_async(__VA_ARGS__, form_events())
#define H5Dcreate2(...) H5Dcreate_async(__VA_ARGS__, form_events())
#define H5Dopen2(...) H5Dopen_async(__VA_ARGS__, form_events())
#define H5Dwrite(...) H5Dwrite_async(__VA_ARGS__, form_events())
#define H5Dread(...) H5Dread_async(__VA_ARGS__, form_events())
#define H5Dset_extent(...) H5Dset_extent_async(__VA_ARGS__, form_events())
#define H5Dclose(...) H5Dclose_async(__VA_ARGS__, form_events())
#define H5Acreate2(...) H5Acreate_async(__VA_ARGS__, form_events())
#define H5Awrite(...) H5Awrite_async(__VA_ARGS__, form_events())
#define H5Aclose(...) H5Aclose_async(__VA_ARGS__, form_events())
#define H5Tcommit2(...) H5Tcommit_async(__VA_ARGS__, form_events())
#define H5Tclose(...) H5Tclose_async(__VA_ARGS__, form_events())
#define H5Ocopy(...) H5Ocopy_async(__VA_ARGS__, form_events())
#define H5Oclose(...) H5Oclose_async(__VA_ARGS__, form_events())
#define H5Ldelete(...) H5Ldelete_async(__VA_ARGS__, form_events())

#endif

#endif
